// Lists the cache, and removes from it (model_cache.h).
#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <set>
#include <system_error>

#include "base/files/mapped_file.h"
#include "base/hex.h"
#include "hub/files/piece_store.h"
#include "hub/model_cache.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> paths;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    paths.push_back(entry->path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

// Revisions may contain slashes, so refs/ is a tree.
std::map<std::string, std::vector<std::string>> revisions_by_commit(const ModelPaths& paths) {
  std::map<std::string, std::vector<std::string>> revisions;
  std::error_code error;
  const fs::path refs = paths.folder / "refs";
  for (fs::recursive_directory_iterator entry(refs, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code ignored;
    if (!entry->is_regular_file(ignored)) continue;
    const std::string revision = entry->path().lexically_relative(refs).string();
    if (const auto commit = commit_on_disk(paths, revision)) revisions[*commit].push_back(revision);
  }
  for (auto& [commit, names] : revisions) std::sort(names.begin(), names.end());
  return revisions;
}

// The bytes of a file that are here, complete or being downloaded; every download uses the same
// cut.
uint64_t bytes_of_file(const ModelPaths& paths, const HubFile& file) {
  std::error_code error;
  const fs::path blob = paths.blobs() / file.hash;
  if (fs::exists(blob, error)) return fs::file_size(blob, error);
  return RangeFile::bytes_in(PieceStore::partial_path(blob), {.size = file.size});
}

void count_by_list(const ModelPaths& paths, const ModelFiles& files, CachedModel& model) {
  model.is_whole = missing_files(paths, files).empty();
  model.files = files.files.size();
  std::set<std::string> seen;  // files with the same content are stored once
  for (const HubFile& file : files.files) {
    if (!seen.insert(file.hash).second) continue;
    model.whole_bytes += file.size;
    model.size_bytes += bytes_of_file(paths, file);
  }
}

void count_by_links(const fs::path& snapshot, CachedModel& model) {
  std::error_code error;
  for (fs::recursive_directory_iterator entry(snapshot, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code ignored;
    if (!entry->is_regular_file(ignored)) continue;
    ++model.files;
    model.size_bytes += entry->file_size(ignored);
  }
  model.whole_bytes = model.size_bytes;
}

CachedModel model_at(const ModelPaths& paths, const ModelId& id, const std::string& commit) {
  CachedModel model{.repository = id.repository, .commit = commit, .path = paths.snapshot(commit)};
  const auto files = read_list(paths, commit);
  if (files.ok()) {
    count_by_list(paths, files.value(), model);
  } else {
    count_by_links(model.path, model);
  }
  return model;
}

void list_model(const fs::path& cache, const ModelId& id, std::vector<CachedModel>& models) {
  const ModelPaths paths(cache, id);
  auto revisions = revisions_by_commit(paths);
  std::set<std::string> commits;
  for (const char* folder : {"snapshots", "lockstep"}) {
    for (const fs::path& path : entries_of(paths.folder / folder)) {
      const std::string commit = path.filename().string().substr(0, kSha1Digits);
      if (is_hex(commit, kSha1Digits)) commits.insert(commit);
    }
  }
  for (const std::string& commit : commits) {
    models.push_back(model_at(paths, id, commit));
    models.back().revisions = revisions[commit];
  }
}

// The disk space of a file, which is less than its length if it has holes.
uint64_t disk_bytes(const fs::path& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return 0;
  constexpr uint64_t kStatBlockBytes = 512;
  return std::min(static_cast<uint64_t>(status.st_size),
                  static_cast<uint64_t>(status.st_blocks) * kStatBlockBytes);
}

uint64_t bytes_below(const fs::path& folder) {
  uint64_t bytes = 0;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code ignored;
    if (entry->is_symlink(ignored) || !entry->is_regular_file(ignored)) continue;
    bytes += disk_bytes(entry->path());
  }
  return bytes;
}

Status remove_tree(const fs::path& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (!error) return Ok{};
  return Error{ErrorCode::kInternal,
               fmt::format("{} cannot be removed: {}", path.string(), error.message())};
}

// Blobs used by a snapshot or a download in progress.
std::set<std::string> used_blobs(const ModelPaths& paths) {
  std::set<std::string> used;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(paths.folder / "snapshots", error), end;
       !error && entry != end; entry.increment(error)) {
    std::error_code ignored;
    if (!entry->is_symlink(ignored)) continue;
    used.insert(fs::read_symlink(entry->path(), ignored).filename().string());
  }
  for (const fs::path& list : entries_of(paths.folder / "lockstep")) {
    const auto files = read_list(paths, list.stem().string());
    if (!files.ok()) continue;
    for (const HubFile& file : files.value().files) used.insert(file.hash);
  }
  return used;
}

Status remove_revision(const ModelPaths& paths, const std::string& commit) {
  const auto revisions = revisions_by_commit(paths);
  const auto own = revisions.find(commit);
  for (const std::string& revision :
       own == revisions.end() ? std::vector<std::string>() : own->second) {
    TRY(remove_tree(paths.reference(revision)));
  }
  TRY(remove_tree(paths.snapshot(commit)));
  TRY(remove_tree(paths.list(commit)));
  TRY(remove_tree(paths.parts(commit)));
  const std::set<std::string> used = used_blobs(paths);
  for (const fs::path& blob : entries_of(paths.blobs())) {
    const std::string name = blob.filename().string();
    if (!used.contains(name.substr(0, name.find('.')))) TRY(remove_tree(blob));
  }
  return Ok{};
}

}  // namespace

std::vector<CachedModel> list_models(const fs::path& cache) {
  std::vector<CachedModel> models;
  for (const fs::path& folder : entries_of(cache)) {
    const auto id = parse_model_id(repository_of_path(folder / "snapshots" / "any"));
    if (id.ok()) list_model(cache, id.value(), models);
  }
  return models;
}

std::optional<CachedModel> find_on_disk(const HubSettings& settings, const ModelId& id) {
  std::vector<fs::path> caches{settings.cache};
  caches.insert(caches.end(), settings.stores.begin(), settings.stores.end());
  for (const fs::path& cache : caches) {
    const ModelPaths paths(cache, id);
    const auto commit = commit_on_disk(paths, id.revision_or_default());
    if (commit) return model_at(paths, id, *commit);
  }
  return std::nullopt;
}

Result<uint64_t> remove_model(const HubSettings& settings, const ModelId& id) {
  if (!id.file.empty()) {
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("models are removed as a whole, like `lockstep remove {}`", id.repository)};
  }
  const ModelPaths paths(settings.cache, id);
  std::error_code error;
  const Error absent{ErrorCode::kNotFound,
                     fmt::format("{} is not in {}; `lockstep list` shows what is", id.text(),
                                 settings.cache.string())};
  if (!fs::is_directory(paths.folder, error)) return absent;
  const ModelLock lock = TRY(ModelLock::take(settings.cache, id));
  const uint64_t before = bytes_below(paths.folder);
  if (id.revision.empty()) {
    TRY(remove_tree(paths.folder));
    return before;
  }
  const auto commit = commit_on_disk(paths, id.revision);
  const bool is_there = commit && (fs::exists(paths.snapshot(*commit), error) ||
                                   fs::exists(paths.list(*commit), error));
  if (!is_there) return absent;
  TRY(remove_revision(paths, *commit));
  return before - std::min(before, bytes_below(paths.folder));
}

}  // namespace lockstep
