// links: weights
// All that parse_safetensors accepts lies inside the file, tensor after tensor. The harness can add
// the eight bytes of the length, so that the fuzzer reaches the JSON quickly: if the first byte is
// 1; otherwise the input is the file.
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/check.h"
#include "weights/safetensors/checkpoint.h"

using namespace lockstep;

namespace {

constexpr uint8_t kWithoutLength = 1;

// The header ends after its last brace; the rest is data.
std::string with_length(std::string_view content) {
  const size_t brace = content.rfind('}');
  const uint64_t header_bytes = brace == std::string_view::npos ? content.size() : brace + 1;
  std::string file;
  for (int i = 0; i < 8; ++i) file += static_cast<char>(header_bytes >> 8 * i);
  return file += content;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view content(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::string file = data[0] == kWithoutLength ? with_length(content) : std::string(content);
  const auto bytes = std::as_bytes(std::span(file));
  const auto tensors = parse_safetensors(bytes);
  if (!tensors.ok()) {
    LOCKSTEP_CHECK(!tensors.error().message.empty());
    return 0;
  }
  const std::byte* end = bytes.data();
  for (const TensorView& tensor : tensors.value()) {
    int64_t elements = 1;
    for (const int64_t dimension : tensor.shape) elements *= dimension;
    LOCKSTEP_CHECK(elements * dtype_bytes(tensor.dtype) == tensor.bytes.size());
    LOCKSTEP_CHECK(tensor.bytes.data() >= end);
    end = tensor.bytes.data() + tensor.bytes.size();
    LOCKSTEP_CHECK(end <= bytes.data() + bytes.size());
  }
  return 0;
}
