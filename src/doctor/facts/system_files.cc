#include "doctor/facts/system_files.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <system_error>

namespace lockstep {
namespace {

namespace fs = std::filesystem;

fs::path below(const fs::path& root, const std::string& path) {
  return root / path.substr(std::min(path.find_first_not_of('/'), path.size()));
}

}  // namespace

std::optional<std::string> SystemFiles::text(const std::string& path) const {
  std::ifstream file(below(root_, path), std::ios::binary);
  if (!file) return std::nullopt;
  // Sizes in /proc and /sys are wrong, so it is read to its end.
  std::string text(kFileBytesMax, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad()) return std::nullopt;
  text.resize(static_cast<size_t>(file.gcount()));
  constexpr const char* kSpace = " \t\r\n";
  text.erase(text.find_last_not_of(kSpace) + 1);
  text.erase(0, std::min(text.find_first_not_of(kSpace), text.size()));
  return text;
}

std::optional<int64_t> SystemFiles::number(const std::string& path) const {
  const auto found = text(path);
  if (!found) return std::nullopt;
  int64_t value = 0;
  const auto parsed = std::from_chars(found->data(), found->data() + found->size(), value);
  return parsed.ec == std::errc() ? std::optional(value) : std::nullopt;
}

bool SystemFiles::exists(const std::string& path) const {
  std::error_code ignored;
  return fs::exists(below(root_, path), ignored);
}

std::vector<std::string> SystemFiles::names(const std::string& folder,
                                            const std::string& prefix) const {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(below(root_, folder), ignored)) {
    std::string name = entry.path().filename().string();
    if (name.starts_with(prefix) && names.size() < kEntriesMax) names.push_back(std::move(name));
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace lockstep
