// links: gguf
// All that GgufFile::parse accepts lies inside the file, tensors do not overlap, and every value
// can be requested as every type.
#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "gguf/gguf.h"

using namespace lockstep;

namespace {

bool is_inside(std::string_view part, std::span<const std::byte> file) {
  const auto* begin = reinterpret_cast<const std::byte*>(part.data());
  return part.empty() || (begin >= file.data() && begin + part.size() <= file.data() + file.size());
}

void check_tensors(const GgufFile& gguf, std::span<const std::byte> file) {
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  for (const GgufTensor& tensor : gguf.tensors()) {
    LOCKSTEP_CHECK(is_inside(tensor.name, file));
    LOCKSTEP_CHECK(gguf.tensor(tensor.name) == &tensor);
    LOCKSTEP_CHECK(!gguf_type_name(tensor.type_id).empty());
    if (tensor.bytes.empty()) continue;
    LOCKSTEP_CHECK(tensor.bytes.data() == file.data() + tensor.offset);
    LOCKSTEP_CHECK(tensor.offset + tensor.bytes.size() <= file.size());
    ranges.emplace_back(tensor.offset, tensor.offset + tensor.bytes.size());
  }
  std::sort(ranges.begin(), ranges.end());
  for (size_t i = 1; i < ranges.size(); ++i)
    LOCKSTEP_CHECK(ranges[i - 1].second <= ranges[i].first);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto file = std::as_bytes(std::span(data, size));
  const auto parsed = GgufFile::parse(file);
  if (!parsed.ok()) {
    LOCKSTEP_CHECK(!parsed.error().message.empty());
    return 0;
  }
  const GgufFile& gguf = parsed.value();
  check_tensors(gguf, file);
  for (const char* key : {"general.alignment", "k", "tokenizer.ggml.tokens", "s", "a"}) {
    const auto text = gguf.string(key);
    if (text.ok() && text.value()) LOCKSTEP_CHECK(is_inside(*text.value(), file));
    const auto strings = gguf.strings(key);
    if (strings.ok()) {
      for (const std::string_view string : strings.value()) LOCKSTEP_CHECK(is_inside(string, file));
    }
    const auto bytes = gguf.bytes(key);
    if (bytes.ok()) LOCKSTEP_CHECK(is_inside(bytes.value(), file));
    (void)gguf.integer(key).ok();
    (void)gguf.number(key).ok();
    (void)gguf.boolean(key).ok();
    (void)gguf.integers(key).ok();
    (void)gguf.numbers(key).ok();
  }
  return 0;
}
