#include "base/files/mapped_file.h"

#include <fmt/core.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <functional>
#include <system_error>
#include <thread>
#include <utility>

#include "base/files/file_io.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kLockWait{10};  // for pieces that are being dropped
constexpr std::chrono::milliseconds kLockPause{5};

Error read_error(const std::filesystem::path& path, int error_number) {
  return {ErrorCode::kInternal,
          "cannot read " + path.string() + ": " + std::generic_category().message(error_number)};
}

}  // namespace

Result<MappedFile> MappedFile::open(const std::filesystem::path& path) {
  UniqueFd fd = TRY(open_regular(path));
  struct stat status = {};
  if (::fstat(fd.get(), &status) != 0) return read_error(path, errno);
  const auto size = static_cast<size_t>(status.st_size);
  if (size == 0) return MappedFile(path, {});  // mmap refuses a length of 0
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (address == MAP_FAILED) return read_error(path, errno);
  MappedFile file(path, {static_cast<const std::byte*>(address), size});
  std::error_code ignored;
  const fs::path real = fs::canonical(path, ignored);
  if (real.extension() != kPartialFileEnding) return file;
  TRY(file.lock_pieces(std::move(fd)));  // before checking which pieces are here
  file.missing_ = TRY(missing_ranges(real, size));
  TRY(file.close_holes());
  return file;
}

Status MappedFile::lock_pieces(UniqueFd fd) {
  const auto deadline = std::chrono::steady_clock::now() + kLockWait;
  while (::flock(fd.get(), LOCK_SH | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return read_error(path_, errno);
    if (std::chrono::steady_clock::now() > deadline) {
      return Error{ErrorCode::kTimeout, path_.string() + " is being changed by another process"};
    }
    std::this_thread::sleep_for(kLockPause);
  }
  lock_ = std::move(fd);
  return Ok{};
}

// Partly present pages stay open: the loader checks each byte.
Status MappedFile::close_holes() {
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  for (const ByteRange& range : missing_) {
    const uint64_t begin = (range.begin + page - 1) / page * page;
    // Nothing uses the bytes after the end of the file in its last page.
    const uint64_t end = range.end == bytes_.size() ? range.end : range.end / page * page;
    if (begin >= end) continue;
    void* address = const_cast<std::byte*>(bytes_.data() + begin);
    if (::mprotect(address, end - begin, PROT_NONE) != 0) return read_error(path_, errno);
  }
  return Ok{};
}

Status MappedFile::keep_only(std::vector<ByteRange> ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const ByteRange& a, const ByteRange& b) { return a.begin < b.begin; });
  std::vector<ByteRange> closed;
  uint64_t at = 0;
  for (const ByteRange& range : ranges) {
    if (range.begin > at) closed.push_back({at, range.begin});
    at = std::max(at, range.end);
  }
  if (at < bytes_.size()) closed.push_back({at, bytes_.size()});
  missing_ = std::move(closed);
  TRY(close_holes());
  // The mapping keeps the open file, and its lock, even after its descriptor is closed.
  if (lock_.is_open() && ::flock(lock_.get(), LOCK_UN) != 0) return read_error(path_, errno);
  lock_.reset();
  return Ok{};
}

std::optional<ByteRange> MappedFile::place_of(std::span<const std::byte> bytes) const {
  const std::less_equal<const std::byte*> before;  // compares pointers into any memory
  if (bytes.empty() || !before(bytes_.data(), bytes.data()) ||
      !before(bytes.data() + bytes.size(), bytes_.data() + bytes_.size())) {
    return std::nullopt;
  }
  const auto begin = static_cast<uint64_t>(bytes.data() - bytes_.data());
  return ByteRange{begin, begin + bytes.size()};
}

Status MappedFile::check_here(std::span<const std::byte> bytes) const {
  if (missing_.empty()) return Ok{};
  const auto place = place_of(bytes);
  if (!place) return Ok{};
  const auto hole =
      std::upper_bound(missing_.begin(), missing_.end(), place->begin,
                       [](uint64_t at, const ByteRange& range) { return at < range.end; });
  if (hole == missing_.end() || hole->begin >= place->end) return Ok{};
  return Error{
      ErrorCode::kNotFound,
      fmt::format("bytes {} to {} of {} are not on this machine, which keeps only part of the file",
                  std::max(hole->begin, place->begin), std::min(hole->end, place->end),
                  path_.string())};
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      bytes_(std::exchange(other.bytes_, {})),
      missing_(std::move(other.missing_)),
      lock_(std::move(other.lock_)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  if (this != &other) {
    unmap();
    path_ = std::move(other.path_);
    bytes_ = std::exchange(other.bytes_, {});
    missing_ = std::move(other.missing_);
    lock_ = std::move(other.lock_);
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

namespace {

// A refusal only costs time or memory.
void advise(std::byte* begin, size_t size, int advice) {
  if (size > 0) (void)::madvise(begin, size, advice);
}

size_t page_bytes() {
  return static_cast<size_t>(::sysconf(_SC_PAGESIZE));
}

// The pages that hold any of the bytes.
void advise_around(std::span<const std::byte> bytes, int advice) {
  if (bytes.empty()) return;
  auto* const begin = const_cast<std::byte*>(bytes.data());
  const size_t before = reinterpret_cast<uintptr_t>(begin) % page_bytes();
  advise(begin - before, before + bytes.size(), advice);
}

}  // namespace

void expect_scattered_reads(std::span<const std::byte> bytes) {
  advise_around(bytes, MADV_RANDOM);
}

void read_ahead(std::span<const std::byte> bytes) {
  advise_around(bytes, MADV_WILLNEED);
}

void release_pages(std::span<const std::byte> bytes) {
  auto* const begin = const_cast<std::byte*>(bytes.data());
  const size_t page = page_bytes();
  const size_t before = (page - reinterpret_cast<uintptr_t>(begin) % page) % page;
  if (bytes.size() <= before) return;
  advise(begin + before, (bytes.size() - before) / page * page, MADV_DONTNEED);
}

}  // namespace lockstep
