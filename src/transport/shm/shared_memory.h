// SharedMemory: a mapping of anonymous memory that several processes share through a file
// descriptor. The memory has no name in any file system, so it is freed with its last user, even
// after kill -9.
#pragma once

#include <cstddef>
#include <span>

#include "base/files/unique_fd.h"
#include "base/result.h"

namespace lockstep {

class SharedMemory {
 public:
  // A new zeroed region. The descriptor is close-on-exec: a parent passes it to a child with
  // posix_spawn_file_actions_adddup2() or clears FD_CLOEXEC between fork and exec.
  static Result<UniqueFd> create(size_t bytes);

  // Maps the region; kCorrupt if it does not have exactly `bytes` bytes. The descriptor may be
  // closed afterwards.
  static Result<SharedMemory> map(int fd, size_t bytes);

  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&& other) noexcept;
  ~SharedMemory();

  std::byte* data() const { return bytes_.data(); }
  size_t size() const { return bytes_.size(); }

 private:
  explicit SharedMemory(std::span<std::byte> bytes) : bytes_(bytes) {}
  void unmap();

  std::span<std::byte> bytes_;
};

}  // namespace lockstep
