// RepeatedBytes: a pattern that stands again and again in one range of addresses and once in
// memory: views of gigabytes cost a few megabytes. The pattern is a file without a name, so pages
// may be given back to the system like those of a model file. Immutable, any thread may read.
#pragma once

#include <cstddef>
#include <span>

#include "base/result.h"

namespace lockstep {

class RepeatedBytes {
 public:
  // `pattern` is a multiple of page_bytes(). The range has at least `bytes`. kExhausted without
  // the memory or the addresses.
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
