// GgufModel: the files of one GGUF model, one or several made by llama.cpp's gguf-split, as one set
// of metadata and tensors. Used by all readers of weights, configuration, tokenizer or chat
// template in such files. Immutable: any thread may read. Views point into the mapped files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/files/mapped_file.h"
#include "base/result.h"
#include "base/text_hash.h"
#include "gguf/gguf.h"

namespace lockstep {

inline constexpr int64_t kGgufPartsMax = 4096;

// Whether `path` is a GGUF file by its name or its first bytes; false for a folder.
bool is_gguf_path(const std::filesystem::path& path);
// The part of a split model that holds its metadata, from the name of any part
// ("x-00001-of-00003.gguf"); any other path unchanged.
std::filesystem::path gguf_first_part(const std::filesystem::path& path);
// "x" of "folder/x.gguf" and "folder/x-00001-of-00003.gguf".
std::string gguf_model_name(const std::filesystem::path& path);

class GgufModel {
 public:
  // `path` is any part of a split model. kNotFound names a missing part; other errors are those of
  // GgufFile::parse, with the file.
  static Result<GgufModel> open(const std::filesystem::path& path);
  // A model of one file, which must outlive the result.
  static Result<GgufModel> parse(std::span<const std::byte> file);

  // From the first part: the others contain only how the model was split.
  const GgufFile& metadata() const { return parts_.front(); }
  std::span<const GgufFile> parts() const { return parts_; }
  const GgufTensor* tensor(std::string_view name) const;
  // The sum over all parts.
  uint64_t file_bytes() const { return file_bytes_; }
  // The tensors are in mapped files: made by open(), not parse().
  bool is_mapped() const { return !files_.empty(); }

 private:
  GgufModel() = default;
  Status index();

  std::vector<MappedFile> files_;  // one per part, unless the caller owns the bytes
  std::vector<GgufFile> parts_;
  std::unordered_map<std::string_view, const GgufTensor*, TextHash> tensors_;
  uint64_t file_bytes_ = 0;
};

}  // namespace lockstep
