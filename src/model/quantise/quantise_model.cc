#include "model/quantise/quantise_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "base/files/mapped_file.h"
#include "gguf/gguf_model.h"
#include "json/json_file.h"
#include "model/load/open_model.h"
#include "model/load/weights.h"
#include "model/quantise/quantise_plan.h"
#include "model/quantise/quantising.h"
#include "weights/weight_source.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr size_t kCopiedBytesMax = size_t{64} << 20;  // a tokenizer is the largest file
constexpr std::string_view kConfig = "config.json";
// The other files of a model folder, as mlx_lm copies them.
constexpr std::array<std::string_view, 8> kCopiedFiles = {".json", ".jinja", ".model", ".tiktoken",
                                                          ".txt",  ".jsonl", ".py",    ".md"};

Error folder_error(const fs::path& path, const std::error_code& error) {
  return {ErrorCode::kInternal, fmt::format("cannot write {}: {}", path.string(), error.message())};
}

// The folder DST.partial, which is removed at the end unless it has been renamed to DST.
class PartialFolder {
 public:
  static Result<PartialFolder> create(const fs::path& to) {
    fs::path path = to;
    path += ".partial";
    std::error_code error;
    if (fs::exists(fs::symlink_status(path, error))) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("{} already exists, maybe from an interrupted run; remove it",
                               path.string())};
    }
    if (!fs::create_directory(path, error)) return folder_error(path, error);
    return PartialFolder(std::move(path));
  }
  PartialFolder(PartialFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  PartialFolder& operator=(PartialFolder&&) = delete;
  ~PartialFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }

  const fs::path& path() const { return path_; }
  Status rename_to(const fs::path& to) {
    std::error_code error;
    fs::rename(path_, to, error);
    if (error) return folder_error(to, error);
    path_.clear();
    return Ok{};
  }

 private:
  explicit PartialFolder(fs::path path) : path_(std::move(path)) {}
  fs::path path_;  // empty: renamed
};

bool is_copied(const fs::path& path) {
  const std::string name = path.filename().string();
  if (name == kConfig || name.ends_with(".index.json") || name.starts_with('.')) return false;
  return name.starts_with("LICENSE") || std::find(kCopiedFiles.begin(), kCopiedFiles.end(),
                                                  path.extension().string()) != kCopiedFiles.end();
}

Status copy_small_files(const fs::path& from, const fs::path& to) {
  std::error_code error;
  for (fs::directory_iterator entry(from, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code ignored;
    if (!entry->is_regular_file(ignored) || !is_copied(entry->path())) continue;
    TRY(write_new_file(to / entry->path().filename(),
                       TRY(read_small_file(entry->path(), kCopiedBytesMax))));
  }
  if (error) {
    return Error{ErrorCode::kInternal,
                 fmt::format("cannot read {}: {}", from.string(), error.message())};
  }
  return Ok{};
}

// As mlx_lm writes it: both keys have the same content, including modules with other bits.
std::string quantised_config(Json config, int bits, const QuantisePlan& plan) {
  JsonObject quantisation{{"group_size", kQuantisedGroup}, {"bits", bits}, {"mode", "affine"}};
  for (const PlannedModule& module : plan.modules) {
    if (module.bits == 0 || module.bits == bits) continue;
    quantisation[module.name] = JsonObject{{"group_size", kQuantisedGroup}, {"bits", module.bits}};
  }
  JsonObject& object = config.as_object();
  if (Json* text = object.if_contains("text_config"); text != nullptr && text->is_object()) {
    text->as_object().erase("quantization_config");
  }
  object["quantization"] = quantisation;
  object["quantization_config"] = std::move(quantisation);
  return dump_json(config) + "\n";
}

class ModelWriter {
 public:
  ModelWriter(const QuantisingSource& source, const QuantisePlan& plan, SafetensorsWriter writer)
      : source_(source), plan_(plan), writer_(std::move(writer)) {}

  Result<QuantiseReport> write(const QuantiseModelOptions& options) {
    QuantiseReport report;
    for (const PlannedModule& module : plan_.modules) report.weights += module.weights();
    uint64_t done = 0;
    QuantisationError all;
    for (const PlannedModule& module : plan_.modules) {
      QuantisationError error;
      for (size_t part = 0; part < module.parts.size(); ++part) {
        if (options.progress) options.progress(done, report.weights, module.parts[part]);
        TRY(module.is_vector ? write_vector(module, part) : write_matrix(module, part, error));
        done += module.weights() / module.parts.size();
      }
      all.add(error);
      if (module.is_vector) continue;
      report.tensors.push_back(
          {module.name, module.bits, module.weights(), error.relative_rms(), error.largest});
    }
    TRY(writer_.finish());
    std::stable_sort(report.tensors.begin(), report.tensors.end(),
                     [](const QuantisedTensor& a, const QuantisedTensor& b) {
                       return a.relative_rms > b.relative_rms;
                     });
    report.relative_rms = all.relative_rms();
    report.bytes_before = source_.file_bytes();
    report.bytes_after = writer_.file_bytes();
    return report;
  }

 private:
  Status write_vector(const PlannedModule& module, size_t part) {
    const StoredVector stored =
        TRY(source_.vector(module.parts[part], module.stack_index(part), module.rows));
    const PlannedTensor& tensor = plan_.tensors[module.first_tensor];
    LOCKSTEP_CHECK(!stored.is_minus_exponential);  // GGUF files are refused
    if (stored.dtype != tensor.dtype) return mixed_types(module.parts[part]);
    return writer_.write(module.first_tensor, part * stored.bytes.size(), stored.bytes);
  }

  Status write_matrix(const PlannedModule& module, size_t part, QuantisationError& error) {
    const StoredMatrix stored = TRY(source_.quantise({.name = module.parts[part],
                                                      .stack_index = module.stack_index(part),
                                                      .rows = module.rows,
                                                      .columns = module.columns},
                                                     error));
    if (module.bits == 0) return write_kept(module, part, stored);
    size_t tensor = module.first_tensor;
    for (const auto& bytes : {stored.codes, stored.scales, stored.biases}) {
      TRY(writer_.write(tensor++, part * bytes.size(), bytes));
    }
    return Ok{};
  }

  Status write_kept(const PlannedModule& module, size_t part, const StoredMatrix& stored) {
    const PlannedTensor& tensor = plan_.tensors[module.first_tensor];
    if (stored.scale_type != tensor.dtype) return mixed_types(module.parts[part]);
    LOCKSTEP_CHECK(stored.column_map.empty());
    const size_t row_bytes = static_cast<size_t>(module.columns) * dtype_bytes(tensor.dtype);
    uint64_t offset = part * static_cast<uint64_t>(module.rows) * row_bytes;
    for (int row = 0; row < module.rows; ++row) {
      const size_t at = static_cast<size_t>(stored.stored_row(row)) * stored.row_bytes;
      TRY(writer_.write(module.first_tensor, offset, stored.codes.subspan(at, row_bytes)));
      offset += row_bytes;
    }
    if (stored.is_mapped_file) release_pages(stored.codes);
    return Ok{};
  }

  static Error mixed_types(const std::string& name) {
    return {ErrorCode::kUnsupported,
            "the tensor " + name + " does not have the type of the first tensor in its stack"};
  }

  const QuantisingSource& source_;
  const QuantisePlan& plan_;
  SafetensorsWriter writer_;
};

Status check_place(const fs::path& to) {
  std::error_code error;
  if (to.empty()) return Error{ErrorCode::kInvalidArgument, "the folder to write has no name"};
  if (fs::exists(fs::symlink_status(to, error))) {
    return Error{ErrorCode::kInvalidArgument, to.string() + " already exists"};
  }
  const fs::path parent = to.has_parent_path() ? to.parent_path() : fs::path(".");
  if (fs::is_directory(parent, error)) return Ok{};
  return Error{ErrorCode::kNotFound, "there is no folder " + parent.string()};
}

Status check_space(const fs::path& to, const QuantisePlan& plan) {
  uint64_t bytes = 0;
  for (const PlannedTensor& tensor : plan.tensors) bytes += tensor.bytes();
  std::error_code error;
  const fs::space_info space = fs::space(to.has_parent_path() ? to.parent_path() : ".", error);
  if (error || space.available >= bytes) return Ok{};  // if unknown, writing will show it
  return Error{
      ErrorCode::kExhausted,
      fmt::format("{} needs {:.1f} GB but its disk has {:.1f} GB free", to.string(),
                  static_cast<double>(bytes) / 1e9, static_cast<double>(space.available) / 1e9)};
}

// With its draft layer, unless the layer cannot be a part of the written files.
Result<OpenedModel> open_with_written_draft_layer(const std::string& model) {
  OpenedModel opened = TRY(open_with_draft_layer(model));
  const bool is_lowered = lowers_norms(*opened.source, opened.config);
  const bool has_own_norms = opened.config.architecture->lowers_norms &&
                             opened.source->lowers_draft_norms().value_or(is_lowered) != is_lowered;
  if (!has_own_norms) return opened;
  const std::string file = opened.draft_files.string();
  opened = TRY(open_model(model));
  opened.draft_problem = fmt::format("{} stores norms in another way than the model's files", file);
  return opened;
}

}  // namespace

Result<QuantiseReport> quantise_model(const QuantiseModelOptions& options) {
  if (!is_affine_bits(options.bits)) {
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("weights of {} bits are not possible, only of {}", options.bits, kAffineBits)};
  }
  fs::path to = options.to.lexically_normal();
  if (!to.has_filename()) to = to.parent_path();  // "folder/"
  TRY(check_model_path(options.from));
  if (is_gguf_path(options.from)) {
    return Error{ErrorCode::kUnsupported, options.from.string() +
                                              " is a GGUF file; only folders with safetensors "
                                              "files and a config.json can be quantised"};
  }
  const OpenedModel opened = TRY(open_with_written_draft_layer(options.from.string()));
  const ModelConfig& config = opened.config;
  const auto source = quantising_source(
      opened.source, config,
      {.bits = options.bits, .requantises = options.requantises, .threads = options.threads});
  TRY(check_place(to));
  Json json = TRY(read_json_file(options.from / kConfig));
  const Json* text_config = find(json, "text_config");
  const bool is_wrapped = text_config != nullptr && text_config->is_object();
  const QuantisePlan plan =
      TRY(plan_quantised(config, *source, is_wrapped ? "language_model." : ""));
  TRY(check_space(to, plan));
  PartialFolder folder = TRY(PartialFolder::create(to));
  const uint64_t limit =
      options.file_bytes_max > 0 ? options.file_bytes_max : SafetensorsWriter::kFileBytesMax;
  ModelWriter writer(*source, plan,
                     TRY(SafetensorsWriter::create(folder.path(), plan.tensors, limit)));
  QuantiseReport report = TRY(writer.write(options));
  report.draft_problem = opened.draft_problem;
  TRY(copy_small_files(options.from, folder.path()));
  TRY(write_new_file(folder.path() / kConfig,
                     quantised_config(std::move(json), options.bits, plan)));
  TRY(folder.rename_to(to));
  return report;
}

}  // namespace lockstep
