#include <string>
#include <system_error>

#include "gguf/gguf_model.h"
#include "weights/gguf/gguf_source.h"
#include "weights/source/draft_source.h"
#include "weights/source/safetensors_source.h"
#include "weights/weight_source.h"

namespace lockstep {

namespace fs = std::filesystem;

namespace {

// Empty if there is none. The first in order of split files, which is the one to open.
fs::path gguf_file_in(const fs::path& folder) {
  std::error_code error;
  fs::path found;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const fs::path& path = entry->path();
    if (path.extension() == ".gguf" && (found.empty() || path < found)) found = path;
  }
  return found;
}

}  // namespace

Error no_tensor(std::string_view name) {
  return {ErrorCode::kNotFound, "the checkpoint has no tensor " + std::string(name)};
}

Status check_model_path(const fs::path& path) {
  std::error_code error;
  if (is_gguf_path(path)) return Ok{};
  if (!fs::exists(path, error)) {
    const bool is_bare_name = !path.has_parent_path() && path.has_filename();
    return Error{
        ErrorCode::kNotFound,
        "there is no model folder or .gguf file " + path.string() +
            (is_bare_name ? "; write a model of the hub with its owner, as Qwen/Qwen3-8B" : "")};
  }
  if (!fs::is_directory(path, error)) {
    return Error{ErrorCode::kInvalidArgument,
                 path.string() + " is neither a model folder nor a GGUF file"};
  }
  if (is_draft_layer(path)) {
    return Error{ErrorCode::kInvalidArgument,
                 path.string() + " has a draft layer alone: give it as --draft-model of its model"};
  }
  if (fs::exists(path / "config.json", error)) return Ok{};
  const fs::path gguf = gguf_file_in(path);
  return Error{ErrorCode::kNotFound,
               path.string() + " is not a model folder: config.json is missing" +
                   (gguf.empty() ? "" : "; name the GGUF file in it, " + gguf.string())};
}

Status WeightSource::need(std::span<const std::byte> bytes) const {
  for (const MappedFile* file : files()) TRY(file->check_here(bytes));
  return Ok{};
}

Result<std::shared_ptr<const WeightSource>> open_weight_source(const std::filesystem::path& path,
                                                               PartialFiles partial) {
  if (is_gguf_path(path)) return open_gguf_source(path);
  return SafetensorsSource::open(path, partial);
}

}  // namespace lockstep
