#include "node/worker/disk_cache.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "base/files/free_space.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kBytesDefault = uint64_t{8} << 30;
constexpr uint64_t kFreePart = 10;

Result<fs::path> pages_folder() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return fs::path(value ? value : "");
  };
  if (const fs::path home = variable("LOCKSTEP_HOME"); !home.empty()) return home / "pages";
  // A relative path must be ignored (XDG Base Directory Specification).
  if (const fs::path cache = variable("XDG_CACHE_HOME"); cache.is_absolute()) {
    return cache / "lockstep" / "pages";
  }
  if (const fs::path home = variable("HOME"); !home.empty()) {
    return home / ".cache" / "lockstep" / "pages";
  }
  return Error{ErrorCode::kNotFound, "it has no folder: set XDG_CACHE_HOME to one"};
}

}  // namespace

Result<DiskCache> disk_cache(uint64_t bytes) {
  const fs::path folder = TRY(pages_folder());
  return DiskCache{.folder = folder.string(), .bytes = bytes};
}

Result<DiskCache> default_disk_cache() {
  const fs::path folder = TRY(pages_folder());
  const fs::path there = nearest_there(folder);
  std::error_code error;
  const fs::space_info space = fs::space(there, error);
  if (error) {
    return Error{ErrorCode::kInternal, fmt::format("{} does not report its free space: {}",
                                                   there.string(), error.message())};
  }
  return DiskCache{.folder = folder.string(),
                   .bytes = std::min<uint64_t>(kBytesDefault, space.available / kFreePart)};
}

}  // namespace lockstep
