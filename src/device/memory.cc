#include "device/memory.h"

#include <fmt/core.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace lockstep {
namespace {

constexpr size_t kHugePageBytes = size_t{2} << 20;

}  // namespace

Result<DeviceMemory> DeviceMemory::allocate(size_t bytes) {
  DeviceMemory memory = TRY(reserve(bytes));
#ifdef MADV_HUGEPAGE
  if (memory.bytes_ >= kHugePageBytes) madvise(memory.data_, memory.bytes_, MADV_HUGEPAGE);
#endif
  return memory;
}

Result<DeviceMemory> DeviceMemory::reserve(size_t bytes) {
  const size_t rounded = page_bytes(bytes);
  int flags = MAP_PRIVATE | MAP_ANONYMOUS;
#ifdef MAP_NORESERVE
  flags |= MAP_NORESERVE;  // a long context's cache is reserved at load and used as it fills
#endif
  void* data = mmap(nullptr, rounded, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (data == MAP_FAILED) {
    return Error{ErrorCode::kExhausted,
                 fmt::format("the system could not allocate {:.1f} MiB of memory: {}",
                             static_cast<double>(rounded) / (1 << 20), std::strerror(errno))};
  }
  return DeviceMemory(static_cast<std::byte*>(data), rounded, true);
}

DeviceMemory DeviceMemory::part_of(const DeviceMemory& whole, size_t offset, size_t bytes) {
  const size_t rounded = page_bytes(bytes);
  LOCKSTEP_CHECK(offset <= whole.bytes_ && rounded <= whole.bytes_ - offset);
  return DeviceMemory(whole.data_ + offset, rounded, false);
}

size_t DeviceMemory::page_bytes(size_t bytes) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return std::max(page, (bytes + page - 1) / page * page);
}

DeviceMemory::DeviceMemory(DeviceMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      owns_(std::exchange(other.owns_, false)) {}

DeviceMemory::~DeviceMemory() {
  if (owns_) munmap(data_, bytes_);
}

void DeviceMemory::set_accessible(bool accessible) const {
  const int protection = accessible ? PROT_READ | PROT_WRITE : PROT_NONE;
  LOCKSTEP_CHECK(mprotect(data_, bytes_, protection) == 0);
}

}  // namespace lockstep
