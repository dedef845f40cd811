#include "transport/shm/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

namespace lockstep {
namespace {

Error refused(const char* what) {
  return Error{ErrorCode::kInternal, std::string(what) + " failed: " + std::strerror(errno)};
}

#ifdef __linux__

UniqueFd open_anonymous() {
  return UniqueFd(::memfd_create("lockstep", MFD_CLOEXEC | MFD_ALLOW_SEALING));
}

// A peer must not be able to shrink the region: reading past its end would be a SIGBUS.
bool fix_size(int fd) {
  return ::fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0;
}

#else

// The name exists only for a moment; O_EXCL makes it ours.
UniqueFd open_anonymous() {
  for (int attempt = 0; attempt < 100; ++attempt) {
    const std::string name =
        "/lockstep." + std::to_string(::getpid()) + "." + std::to_string(attempt);
    UniqueFd fd(::shm_open(name.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600));
    if (!fd.is_open() && errno == EEXIST) continue;
    if (fd.is_open()) {
      ::shm_unlink(name.c_str());
      ::fcntl(fd.get(), F_SETFD, FD_CLOEXEC);
    }
    return fd;
  }
  return UniqueFd();
}

bool fix_size(int) {
  return true;
}

#endif

}  // namespace

Result<UniqueFd> SharedMemory::create(size_t bytes) {
  UniqueFd fd = open_anonymous();
  if (!fd.is_open()) return refused("creating shared memory");
  if (::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) return refused("sizing shared memory");
  if (!fix_size(fd.get())) return refused("sealing shared memory");
  return fd;
}

Result<SharedMemory> SharedMemory::map(int fd, size_t bytes) {
  struct stat facts {};
  if (::fstat(fd, &facts) != 0) return refused("looking at shared memory");
  if (static_cast<size_t>(facts.st_size) != bytes) {
    return Error{ErrorCode::kCorrupt, "shared memory has " + std::to_string(facts.st_size) +
                                          " bytes instead of " + std::to_string(bytes)};
  }
  void* address = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (address == MAP_FAILED) return refused("mapping shared memory");
  return SharedMemory({static_cast<std::byte*>(address), bytes});
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : bytes_(std::exchange(other.bytes_, {})) {}

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
  if (this != &other) {
    unmap();
    bytes_ = std::exchange(other.bytes_, {});
  }
  return *this;
}

SharedMemory::~SharedMemory() {
  unmap();
}

void SharedMemory::unmap() {
  if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
  bytes_ = {};
}

}  // namespace lockstep
