#include "base/file_io.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace lockstep {
namespace {

constexpr size_t kCallBytesMax = size_t{256} << 20;  // macOS refuses 2 GiB

}  // namespace

ssize_t read_at(int fd, std::span<std::byte> bytes, uint64_t offset) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got =
        ::pread(fd, bytes.data() + done, std::min(bytes.size() - done, kCallBytesMax),
                static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return -1;
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  return static_cast<ssize_t>(done);
}

bool write_at(int fd, std::span<const std::byte> bytes, uint64_t offset) {
  while (!bytes.empty()) {
    const ssize_t put = ::pwrite(fd, bytes.data(), std::min(bytes.size(), kCallBytesMax),
                                 static_cast<off_t>(offset));
    if (put < 0 && errno == EINTR) continue;
    if (put == 0) errno = ENOSPC;
    if (put <= 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(put));
    offset += static_cast<uint64_t>(put);
  }
  return true;
}

}  // namespace lockstep
