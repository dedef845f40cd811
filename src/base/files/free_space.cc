#include "base/files/free_space.h"

#include <system_error>
#include <utility>

namespace lockstep {

namespace fs = std::filesystem;

fs::path nearest_there(fs::path path) {
  std::error_code ignored;
  while (!fs::exists(path, ignored) && path.has_relative_path()) path = path.parent_path();
  return path;
}

std::optional<uint64_t> free_bytes_at(const fs::path& path) {
  std::error_code failed;
  const fs::space_info space = fs::space(nearest_there(path), failed);
  const bool is_known = !failed && space.available != static_cast<uintmax_t>(-1);
  return is_known ? std::optional<uint64_t>(space.available) : std::nullopt;
}

}  // namespace lockstep
