#include "weights/source/draft_source.h"

#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "json/json_file.h"
#include "weights/source/safetensors_source.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr const char* kConfig = "config.json";
constexpr const char* kWeights = "model.safetensors";

bool has_file(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

// Requests go to one of two sources, by the beginning of the name.
class DraftSource final : public WeightSource {
 public:
  DraftSource(std::shared_ptr<const WeightSource> model, std::shared_ptr<const WeightSource> draft,
              std::string_view prefix, bool lowers_norms)
      : model_(std::move(model)),
        draft_(std::move(draft)),
        prefix_(prefix),
        lowers_norms_(lowers_norms) {
    for (const auto& source : {model_, draft_}) {
      files_.insert(files_.end(), source->files().begin(), source->files().end());
    }
  }

  Result<StoredMatrix> matrix(const MatrixRequest& request) const override {
    return of(request.name).matrix(request);
  }
  Result<StoredVector> vector(std::string_view name, int stack_index, int size) const override {
    return of(name).vector(name, stack_index, size);
  }
  std::vector<int64_t> shape_of(std::string_view name) const override {
    return of(name).shape_of(name);
  }
  bool has(std::string_view name, int stack_index) const override {
    return of(name).has(name, stack_index);
  }
  uint64_t file_bytes() const override { return model_->file_bytes() + draft_->file_bytes(); }
  std::span<const MappedFile* const> files() const override { return files_; }
  std::optional<bool> lowers_draft_norms() const override { return lowers_norms_; }

 private:
  const WeightSource& of(std::string_view name) const {
    return name.starts_with(prefix_) ? *draft_ : *model_;
  }

  std::shared_ptr<const WeightSource> model_, draft_;
  std::string prefix_;
  bool lowers_norms_;
  std::vector<const MappedFile*> files_;
};

// MLX stores norms as they are, and so do its converters, which leave out the beginning of the
// published names.
bool lowers_norms(const Checkpoint& checkpoint) {
  return checkpoint.format() != "mlx" && !checkpoint.has("pre_fc_norm_hidden.weight");
}

// The layer's own folder has it, else the model's.
Result<Json> config_of(const fs::path& path, const fs::path& model_folder) {
  std::error_code ignored;
  const fs::path own = (fs::is_directory(path, ignored) ? path : path.parent_path()) / kConfig;
  if (has_file(own)) return read_json_file(own);
  const fs::path config = model_folder / kConfig;
  if (!has_file(config)) return Json(JsonObject());
  Json all = TRY(read_json_file(config));
  // MTPLX quantises the layer in a way of its own.
  const Json* quantisation = find(all, "mtplx_mtp_quantization");
  if (quantisation == nullptr) return all;
  return Json(JsonObject{{"quantization", *quantisation}});
}

}  // namespace

fs::path draft_layer_in(const fs::path& model) {
  for (const fs::path& usual : {model / "mtp.safetensors", model / "mtp" / kWeights}) {
    if (has_file(usual)) return usual;
  }
  fs::path found;
  std::error_code error;
  for (fs::directory_iterator entry(model, error), end; !error && entry != end;
       entry.increment(error)) {
    const fs::path& path = entry->path();
    const std::string name = path.filename().string();
    const bool is_one =
        path.extension() == ".safetensors" &&
        (name.starts_with("mtp") || name.starts_with("model-mtp") || name.starts_with("model_mtp"));
    if (is_one && (found.empty() || path < found)) found = path;
  }
  return found;
}

bool is_draft_layer(const fs::path& folder) {
  if (folder.empty() || !has_file(folder / kConfig)) return false;
  const auto config = read_json_file(folder / kConfig);
  if (!config.ok()) return false;
  const auto type = get_string(config.value(), "model_type");
  if (!type.ok() || !type.value()) return false;
  return type.value()->ends_with("_mtp") || type.value()->ends_with("_dspark");
}

Result<std::shared_ptr<const WeightSource>> with_draft_layer(
    std::shared_ptr<const WeightSource> model, const fs::path& model_folder, const fs::path& path,
    std::string_view prefix, PartialFiles partial) {
  std::error_code ignored;
  auto checkpoint = TRY(fs::is_directory(path, ignored) ? Checkpoint::open(path, partial)
                                                        : Checkpoint::open_file(path, partial));
  const bool is_lowered = lowers_norms(*checkpoint);
  const Json config = TRY(config_of(path, model_folder));
  auto draft = TRY(
      SafetensorsSource::over(std::move(checkpoint), config, TensorNames::of_draft_layer(prefix)));
  return std::shared_ptr<const WeightSource>(
      new DraftSource(std::move(model), std::move(draft), prefix, is_lowered));
}

}  // namespace lockstep
