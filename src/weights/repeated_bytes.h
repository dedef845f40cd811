// RepeatedBytes: a pattern that repeats throughout an address range but is in memory once: views of
// gigabytes cost a few megabytes. The pattern is an unnamed file, so its pages can be released like
// those of a model file. Immutable, any thread may read.
#pragma once

#include <cstddef>
#include <span>

#include "base/result.h"

namespace lockstep {

class RepeatedBytes {
 public:
  // `pattern` is a multiple of page_bytes(). The range has at least `bytes`. kExhausted without
  // enough memory or addresses.
  static Result<RepeatedBytes> make(std::span<const std::byte> pattern, size_t bytes);
  static size_t page_bytes();

  RepeatedBytes(RepeatedBytes&& other) noexcept;
  RepeatedBytes& operator=(RepeatedBytes&&) = delete;
  ~RepeatedBytes();

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  explicit RepeatedBytes(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::span<const std::byte> bytes_;
};

}  // namespace lockstep
