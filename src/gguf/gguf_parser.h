// GgufParser: reads one GGUF file from front to back. Only for gguf.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "gguf/gguf.h"

namespace lockstep {

inline constexpr std::string_view kGgufMagic = "GGUF";

// `bytes` holds one value of one of the format's number types (or boolean), little-endian.
GgufValue gguf_number(uint32_t value_type, std::span<const std::byte> bytes);

class GgufParser {
 public:
  explicit GgufParser(std::span<const std::byte> file) : file_(file) {}
  Result<GgufFile> parse();

 private:
  Status read_header();
  Status read_metadata(GgufFile& result);
  Status read_tensors(GgufFile& result);
  Status place_tensors(GgufFile& result);
  Result<GgufTensor> read_tensor();

  Result<GgufValue> read_value(uint32_t type);
  Result<GgufArray> read_array(int depth);
  Result<std::string_view> read_string();
  Result<uint64_t> read_unsigned(size_t size);
  Result<std::span<const std::byte>> take(uint64_t size);

  std::span<const std::byte> file_;
  uint64_t position_ = 0;
  uint64_t metadata_count_ = 0;
  uint64_t tensor_count_ = 0;
  uint64_t alignment_ = 0;
};

}  // namespace lockstep
