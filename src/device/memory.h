// DeviceMemory: page-aligned anonymous memory that takes physical pages on first touch, with huge
// pages if the system has them. Can be made inaccessible, for the test device.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.h"

namespace lockstep {

class DeviceMemory {
 public:
  static Result<DeviceMemory> allocate(size_t bytes);
  // Without huge pages, for memory of which most will never be touched.
  static Result<DeviceMemory> reserve(size_t bytes);
  // A part of other memory, which must live as long. `offset`: a multiple of the page size.
  static DeviceMemory part_of(const DeviceMemory& whole, size_t offset, size_t bytes);
  // The size of the pages that so many bytes take, which are one at least.
  static size_t page_bytes(size_t bytes);
  DeviceMemory(DeviceMemory&& other) noexcept;
  DeviceMemory& operator=(DeviceMemory&&) = delete;
  ~DeviceMemory();

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  void set_accessible(bool accessible) const;

 private:
  DeviceMemory(std::byte* data, size_t bytes, bool owns)
      : data_(data), bytes_(bytes), owns_(owns) {}
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;  // a multiple of the page size
  bool owns_ = false;
};

}  // namespace lockstep
