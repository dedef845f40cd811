#include "weights/repeated_bytes.h"

#include <fmt/core.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <utility>

#include "base/check.h"

namespace lockstep {
namespace {

Error no_memory(size_t bytes) {
  return {ErrorCode::kExhausted,
          fmt::format("the system could not allocate {:.1f} MiB for random weights: {}",
                      static_cast<double>(bytes) / (1 << 20), std::strerror(errno))};
}

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

}  // namespace

size_t RepeatedBytes::page_bytes() {
  return static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

Result<RepeatedBytes> RepeatedBytes::make(std::span<const std::byte> pattern, size_t bytes) {
  LOCKSTEP_CHECK(!pattern.empty() && pattern.size() % page_bytes() == 0);
  const std::unique_ptr<std::FILE, CloseFile> file(std::tmpfile());
  if (!file) return no_memory(pattern.size());
  if (std::fwrite(pattern.data(), 1, pattern.size(), file.get()) != pattern.size() ||
      std::fflush(file.get()) != 0) {
    return no_memory(pattern.size());
  }
  const size_t copies = (bytes + pattern.size() - 1) / pattern.size();
  const size_t total = (copies == 0 ? 1 : copies) * pattern.size();
  // Reserves all addresses at once, so that each copy replaces a part of our own range.
  void* const begin = mmap(nullptr, total, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (begin == MAP_FAILED) return no_memory(total);
  RepeatedBytes result({static_cast<const std::byte*>(begin), total});
  for (size_t at = 0; at < total; at += pattern.size()) {
    void* const copy = static_cast<std::byte*>(begin) + at;
    if (mmap(copy, pattern.size(), PROT_READ, MAP_SHARED | MAP_FIXED, fileno(file.get()), 0) ==
        MAP_FAILED) {
      return no_memory(total);
    }
  }
  return result;
}

RepeatedBytes::RepeatedBytes(RepeatedBytes&& other) noexcept
    : bytes_(std::exchange(other.bytes_, {})) {}

RepeatedBytes::~RepeatedBytes() {
  if (!bytes_.empty()) munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace lockstep
