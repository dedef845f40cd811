// Helpers for binary formats between nodes: little-endian numbers, and bytes as the text that
// frames carry. Reading past the end makes the reader fail and never yields data.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

inline std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

template <std::unsigned_integral Number>
void append_number(std::vector<std::byte>& out, Number number) {
  for (size_t i = 0; i < sizeof(Number); ++i) {
    out.push_back(static_cast<std::byte>(static_cast<uint64_t>(number) >> (8 * i)));
  }
}

inline void append_bytes(std::vector<std::byte>& out, std::span<const std::byte> bytes) {
  out.insert(out.end(), bytes.begin(), bytes.end());
}

class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  template <std::unsigned_integral Number>
  Number number() {
    const auto bytes = take(sizeof(Number));
    uint64_t value = 0;
    for (size_t i = bytes.size(); i-- > 0;)
      value = value << 8 | std::to_integer<uint64_t>(bytes[i]);
    return static_cast<Number>(value);
  }
  void fill(std::span<std::byte> out) {
    const auto bytes = take(out.size());
    if (!bytes.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
  }
  // Empty once too few bytes were left.
  std::span<const std::byte> take(size_t count) {
    if (count > rest_.size()) {
      has_failed_ = true;
      rest_ = {};
      return {};
    }
    const auto taken = rest_.first(count);
    rest_ = rest_.subspan(count);
    return taken;
  }
  std::span<const std::byte> rest() const { return rest_; }
  bool has_failed() const { return has_failed_; }
  // Nothing was missing and nothing is left.
  bool is_complete() const { return !has_failed_ && rest_.empty(); }

 private:
  std::span<const std::byte> rest_;
  bool has_failed_ = false;
};

}  // namespace lockstep
