#include "node/fetch/local_files.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <system_error>
#include <utility>

#include "base/crypto/hasher.h"
#include "base/hex.h"
#include "hub/files/choose_files.h"
#include "hub/files/model_id.h"
#include "hub/model_cache.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr size_t kFolderFilesMax = 10'000;
constexpr size_t kNameBytesMax = 80;
constexpr const char* kInnerFolders[] = {"", "1_Pooling"};  // read with the top folder

bool is_below(const fs::path& path, const fs::path& folder) {
  const auto [end, ignored] = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  return end == folder.end();
}

// Names in the folder, and the files they refer to.
Result<std::map<std::string, fs::path>> names_in(const fs::path& folder) {
  std::error_code error;
  const fs::path real = fs::canonical(folder, error);
  if (error) {
    return Error{ErrorCode::kNotFound, fmt::format("there is no folder {}", folder.string())};
  }
  const fs::path allowed =
      repository_of_path(real).empty() ? real : real.parent_path().parent_path();
  std::map<std::string, fs::path> names;
  for (const char* inner : kInnerFolders) {
    fs::directory_iterator entry(real / inner, error), end;
    for (; !error && entry != end && names.size() < kFolderFilesMax; entry.increment(error)) {
      std::error_code unreadable;
      const fs::path file = fs::canonical(entry->path(), unreadable);
      const std::string name = entry->path().lexically_relative(real).string();
      if (unreadable || !fs::is_regular_file(file, unreadable) || !is_below(file, allowed) ||
          !is_safe_file_name(name)) {
        continue;
      }
      names[name] = file;
    }
    error.clear();
  }
  return names;
}

// Over lengths, hashes and names, in the order of the names.
std::string files_digest(const ModelFiles& files) {
  Hasher hasher(HashKind::kSha256);
  for (const HubFile& file : files.files) {
    hasher.add(fmt::format("{} {} {}\n", file.hash, file.size, file.name));
  }
  return hasher.finish_hex().substr(0, kSha1Digits);
}

}  // namespace

Result<LocalFiles> list_local_files(const fs::path& path, FileHashes& hashes,
                                    const std::atomic<bool>* cancelled) {
  std::error_code error;
  const bool is_folder = fs::is_directory(path, error);
  const auto names = TRY(names_in(is_folder ? path : path.parent_path()));
  ModelFiles all;
  std::map<std::string, FileStamp> stamps;
  for (const auto& [name, file] : names) {
    const auto stamp = stamp_of(file);
    if (!stamp.ok()) continue;
    stamps[name] = stamp.value();
    all.files.push_back({.name = name, .size = stamp.value().size, .hash = {}});
  }
  const ModelId id{.repository = path.filename().string(),
                   .revision = {},
                   .file = is_folder ? "" : path.filename().string()};
  LocalFiles local;
  local.files = TRY(choose_files(all, id, {}));
  std::sort(local.files.files.begin(), local.files.files.end(),
            [](const HubFile& a, const HubFile& b) { return a.name < b.name; });
  for (HubFile& file : local.files.files) {
    local.paths.push_back(names.at(file.name));
    local.stamps.push_back(stamps.at(file.name));
    file.hash = TRY(hashes.sha256_of(local.paths.back(), cancelled));
  }
  local.files.commit = files_digest(local.files);
  return local;
}

std::string local_model_name(const fs::path& path) {
  const fs::path normal = (path / "").lexically_normal().parent_path();
  const fs::path named = normal.extension() == ".gguf" ? normal.stem() : normal.filename();
  std::string name;
  for (const char c : named.string().substr(0, kNameBytesMax)) {
    const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                           (c >= '0' && c <= '9') || c == '_' || c == '.';
    const char kept = is_letter ? c : '-';
    const bool is_doubled = !name.empty() && (kept == '-' || kept == '.') && name.back() == kept;
    if (!is_doubled) name += kept;
  }
  const auto is_edge = [](char c) { return c == '-' || c == '.'; };
  while (!name.empty() && is_edge(name.front())) name.erase(0, 1);
  while (!name.empty() && is_edge(name.back())) name.pop_back();
  return name.empty() ? "model" : name;
}

}  // namespace lockstep
