// GgufFile: the container of llama.cpp's model files, checked completely: metadata as typed values,
// and the place of each tensor. It does not interpret the bytes of tensors. Views point into the
// mapped file. Immutable: any thread may read. Format, versions 2 and 3, little-endian:
// https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "base/result.h"
#include "base/text_hash.h"

namespace lockstep {

inline constexpr uint64_t kGgufMetadataMax = 65'536;
inline constexpr uint64_t kGgufTensorsMax = 1 << 20;
inline constexpr uint64_t kGgufNameBytesMax = 65'535;  // of a key (the format's limit) or a tensor
inline constexpr int kGgufArrayDepthMax = 4;
inline constexpr size_t kGgufDimensionsMax = 4;

// A row is cut into blocks of `elements`, each stored in `bytes`.
struct GgufBlock {
  std::string_view name;  // "Q4_K"
  uint64_t elements;
  uint64_t bytes;
};

// For every type of known size, including those that lockstep does not compute with, since a file's
// other tensors are checked too. Types it computes with: tensor/ggml_blocks.h.
std::optional<GgufBlock> gguf_block(uint32_t type_id);
// "Q4_K", or "type 77".
std::string gguf_type_name(uint32_t type_id);

struct GgufArray;
// Integers of every width, floats of both; unsigned values beyond int64 stay uint64_t.
using GgufValue = std::variant<bool, int64_t, uint64_t, double, std::string_view, GgufArray>;

struct GgufArray {
  // One of them is filled, by the type of the elements; numbers stay as stored in the file.
  std::vector<std::string_view> strings;
  std::vector<GgufArray> arrays;
  std::span<const std::byte> numbers;
  uint32_t number_type = 0;  // the format's value type of `numbers`
  uint64_t count = 0;
};

struct GgufTensor {
  std::string_view name;
  std::vector<uint64_t> dimensions;  // in the format's order: the first is contiguous
  uint32_t type_id;
  uint64_t offset;  // in the file
  // Empty for a type of unknown size; see gguf_block().
  std::span<const std::byte> bytes;
};

class GgufFile {
 public:
  // `file` is the whole file and must outlive the result. kCorrupt or kUnsupported say why.
  static Result<GgufFile> parse(std::span<const std::byte> file);
  static bool has_magic(std::span<const std::byte> file);

  std::span<const GgufTensor> tensors() const { return tensors_; }
  const GgufTensor* tensor(std::string_view name) const;
  const GgufValue* find(std::string_view key) const;

  // Nullopt if the key is missing; kCorrupt, with the key, if the value has another type.
  Result<std::optional<int64_t>> integer(std::string_view key) const;
  Result<std::optional<double>> number(std::string_view key) const;  // takes integers too
  Result<std::optional<bool>> boolean(std::string_view key) const;
  Result<std::optional<std::string_view>> string(std::string_view key) const;
  // An empty list if the key is missing.
  Result<std::vector<std::string_view>> strings(std::string_view key) const;
  Result<std::vector<int64_t>> integers(std::string_view key) const;
  Result<std::vector<double>> numbers(std::string_view key) const;
  // An array of 8-bit values as stored in the file.
  Result<std::string_view> bytes(std::string_view key) const;

 private:
  Result<const GgufArray*> array(std::string_view key) const;
  Result<const GgufArray*> number_list(std::string_view key) const;

  std::unordered_map<std::string_view, GgufValue, TextHash> metadata_;
  std::vector<GgufTensor> tensors_;
  std::unordered_map<std::string_view, size_t, TextHash> tensor_index_;

  friend class GgufParser;
};

}  // namespace lockstep
