#include "base/files/file_io.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace lockstep {
namespace {

constexpr size_t kCallBytesMax = size_t{256} << 20;  // macOS refuses 2 GiB

Error open_error(const std::filesystem::path& path, int error_number) {
  const bool is_missing = error_number == ENOENT || error_number == ENOTDIR;
  if (is_missing) return {ErrorCode::kNotFound, path.string() + " does not exist"};
  if (error_number == ENXIO) {  // for a socket
    return {ErrorCode::kInvalidArgument, path.string() + " is not a regular file"};
  }
  return {ErrorCode::kInternal,
          "cannot read " + path.string() + ": " + std::generic_category().message(error_number)};
}

}  // namespace

Result<UniqueFd> open_regular(const std::filesystem::path& path, Links links) {
  const int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  UniqueFd fd(::open(path.c_str(), links == Links::kRefuse ? flags | O_NOFOLLOW : flags));
  struct stat facts {};
  if (!fd.is_open() || ::fstat(fd.get(), &facts) != 0) return open_error(path, errno);
  if (S_ISREG(facts.st_mode)) return fd;
  const char* kind = S_ISDIR(facts.st_mode) ? " is a folder, not a file" : " is not a regular file";
  return Error{ErrorCode::kInvalidArgument, path.string() + kind};
}

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
