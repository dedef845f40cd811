#include "base/machine/cgroup_memory.h"

#include <algorithm>
#include <fstream>
#include <string>

namespace lockstep {
namespace {

namespace fs = std::filesystem;

// File names: https://docs.kernel.org/admin-guide/cgroup-v2.html and cgroup-v1/memory.html.
struct FileNames {
  const char* limit;
  const char* used;
  const char* cached;  // a line of memory.stat
};
constexpr FileNames kVersion2{"memory.max", "memory.current", "inactive_file"};
constexpr FileNames kVersion1{"memory.limit_in_bytes", "memory.usage_in_bytes",
                              "total_inactive_file"};
constexpr int kDepthMax = 64;

// Nullopt if there is no limit ("max") or no such file.
std::optional<uint64_t> bytes_in(const fs::path& path) {
  std::ifstream file(path);
  uint64_t value = 0;
  return file >> value ? std::optional(value) : std::nullopt;
}

uint64_t cached_bytes(const fs::path& group, const FileNames& names) {
  std::ifstream file(group / "memory.stat");
  std::string key;
  uint64_t value = 0;
  while (file >> key >> value) {
    if (key == names.cached) return value;
  }
  return 0;
}

std::optional<uint64_t> left_in(const fs::path& group, const FileNames& names) {
  const auto limit = bytes_in(group / names.limit);
  const auto used = bytes_in(group / names.used);
  if (!limit || !used) return std::nullopt;
  const uint64_t taken = *used - std::min(*used, cached_bytes(group, names));
  return *limit > taken ? *limit - taken : 0;
}

// In a container the path may be the host's, of which only the root exists here.
std::optional<uint64_t> least_left(const fs::path& root, fs::path path, const FileNames& names) {
  std::optional<uint64_t> least = left_in(root, names);
  for (int depth = 0; depth < kDepthMax && !path.empty(); ++depth) {
    const auto left = left_in(root / path, names);
    if (left) least = std::min(least.value_or(*left), *left);
    path = path.parent_path();
  }
  return least;
}

bool has_memory(std::string_view controllers) {
  while (!controllers.empty()) {
    const size_t end = std::min(controllers.find(','), controllers.size());
    if (controllers.substr(0, end) == "memory") return true;
    controllers.remove_prefix(std::min(end + 1, controllers.size()));
  }
  return false;
}

}  // namespace

// Lines are "number:controllers:/path"; without controllers it is version 2.
std::optional<uint64_t> cgroup_memory_left(const fs::path& root, std::string_view memberships) {
  std::optional<uint64_t> least;
  while (!memberships.empty()) {
    const size_t end = std::min(memberships.find('\n'), memberships.size());
    const std::string_view line = memberships.substr(0, end);
    memberships.remove_prefix(std::min(end + 1, memberships.size()));
    const size_t first = line.find(':');
    const size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    if (!controllers.empty() && !has_memory(controllers)) continue;
    const bool is_second = controllers.empty();
    const fs::path path = fs::path(line.substr(second + 1)).relative_path();
    const auto left =
        least_left(is_second ? root : root / "memory", path, is_second ? kVersion2 : kVersion1);
    if (left) least = std::min(least.value_or(*left), *left);
  }
  return least;
}

}  // namespace lockstep
