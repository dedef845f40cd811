// GgufModel: the files of one GGUF model, one or as many as llama.cpp's gguf-split made of it, as
// one set of metadata and tensors. Who reads weights, the configuration, the tokenizer or the chat
// template out of such files comes here. Immutable: any thread may read. Views point into the
// mapped files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/mapped_file.h"
#include "base/result.h"
#include "weights/gguf.h"

namespace lockstep {

inline constexpr int64_t kGgufPartsMax = 4096;

// Whether `path` is a GGUF file by its name or its first bytes; a folder is none.
bool is_gguf_path(const std::filesystem::path& path);
// The part of a split model that holds its metadata, by the name of any part
// ("x-00001-of-00003.gguf"); another path as it is.
std::filesystem::path gguf_first_part(const std::filesystem::path& path);
// "x" of "folder/x.gguf" and "folder/x-00001-of-00003.gguf".
std::string gguf_model_name(const std::filesystem::path& path);

class GgufModel {
 public:
  // `path` is any part of a split model. kNotFound names a part that is missing; otherwise as
  // GgufFile::parse, with the file.
  static Result<GgufModel> open(const std::filesystem::path& path);
  // A model of one file, which outlives the result.
  static Result<GgufModel> parse(std::span<const std::byte> file);

  // Of the first part: the others repeat nothing but how the model was split.
  const GgufFile& metadata() const { return parts_.front(); }
  std::span<const GgufFile> parts() const { return parts_; }
  const GgufTensor* tensor(std::string_view name) const;
  // Of all parts together.
  uint64_t file_bytes() const { return file_bytes_; }
  // The tensors lie in mapped files: open() made it, not parse().
  bool is_mapped() const { return !files_.empty(); }

 private:
  GgufModel() = default;
  Status index();

  std::vector<MappedFile> files_;  // one for each part, unless the caller keeps the bytes
  std::vector<GgufFile> parts_;
  std::unordered_map<std::string_view, const GgufTensor*> tensors_;
  uint64_t file_bytes_ = 0;
};

}  // namespace lockstep
