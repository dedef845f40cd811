#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <system_error>
#include <utility>

#include "base/unique_fd.h"

namespace lockstep {
namespace {

Error system_error(const std::filesystem::path& path, int error_number) {
  const bool is_missing = error_number == ENOENT || error_number == ENOTDIR;
  if (is_missing) return {ErrorCode::kNotFound, path.string() + " does not exist"};
  return {ErrorCode::kInternal,
          "cannot read " + path.string() + ": " + std::generic_category().message(error_number)};
}

}  // namespace

Result<MappedFile> MappedFile::open(const std::filesystem::path& path) {
  // Without O_NONBLOCK a named pipe would wait here for its writer.
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.is_open()) return system_error(path, errno);
  struct stat status = {};
  if (::fstat(fd.get(), &status) != 0) return system_error(path, errno);
  if (!S_ISREG(status.st_mode)) {
    const char* kind = S_ISDIR(status.st_mode) ? " is a folder, not a file" : " is no regular file";
    return Error{ErrorCode::kInvalidArgument, path.string() + kind};
  }
  const auto size = static_cast<size_t>(status.st_size);
  if (size == 0) return MappedFile({});  // mmap refuses a length of 0
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (address == MAP_FAILED) return system_error(path, errno);
  return MappedFile({static_cast<const std::byte*>(address), size});
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  if (this != &other) {
    unmap();
    bytes_ = std::exchange(other.bytes_, {});
  }
  return *this;
}

MappedFile::~MappedFile() {
  unmap();
}

void MappedFile::unmap() {
  if (bytes_.empty()) return;
  ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

Result<std::string> read_small_file(const std::filesystem::path& path, size_t bytes_max) {
  const MappedFile file = TRY(MappedFile::open(path));
  const auto bytes = file.bytes();
  if (bytes.size() > bytes_max) {
    return Error{ErrorCode::kUnsupported, path.string() + " has " + std::to_string(bytes.size()) +
                                              " bytes, but at most " + std::to_string(bytes_max) +
                                              " are read; check that it is the right file"};
  }
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

void release_pages(std::span<const std::byte> bytes) {
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = (reinterpret_cast<uintptr_t>(bytes.data()) + page - 1) / page * page;
  const auto end = reinterpret_cast<uintptr_t>(bytes.data() + bytes.size()) / page * page;
  // A refusal costs memory and nothing else.
  if (begin < end) (void)::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

}  // namespace lockstep
