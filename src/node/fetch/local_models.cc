#include "node/fetch/local_models.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/crypto/hasher.h"
#include "base/files/file_io.h"
#include "base/files/free_space.h"
#include "base/files/unique_fd.h"
#include "base/hex.h"
#include "base/log.h"
#include "base/threads/guarded.h"
#include "hub/files/choose_files.h"
#include "hub/files/range_file.h"
#include "model/load/shape_model.h"
#include "node/fetch/local_files.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kLocalModelsLookAgain{1};
constexpr size_t kEntriesMax = 256;                      // beyond: not cached
constexpr uint64_t kRoomSpareBytes = uint64_t{1} << 30;  // copies leave this much free

// Files downloaded by other tools: they keep no list, but the name of a large blob is its SHA-256,
// and of a small one its git hash.
ModelFiles list_of_snapshot(const ModelPaths& paths, const std::string& commit) {
  ModelFiles files{.commit = commit};
  const fs::path snapshot = paths.snapshot(commit);
  std::error_code error;
  for (fs::recursive_directory_iterator entry(snapshot, error), end;
       !error && entry != end && files.files.size() < LocalModels::kFilesMax;
       entry.increment(error)) {
    std::error_code unreadable;
    const std::string hash = fs::read_symlink(entry->path(), unreadable).filename().string();
    const bool is_large = is_hex(hash, kSha256Digits);
    if (unreadable || (!is_large && !is_hex(hash, kSha1Digits))) continue;
    const uint64_t size = fs::file_size(paths.blobs() / hash, unreadable);
    const std::string name = entry->path().lexically_relative(snapshot).string();
    if (unreadable || !is_safe_file_name(name)) continue;
    files.files.push_back({.name = name,
                           .size = size,
                           .hash_kind = is_large ? HashKind::kSha256 : HashKind::kSha1,
                           .hash = hash});
  }
  return files;
}

std::shared_ptr<ShelvedModel> find_whole(const fs::path& cache, const ModelId& id) {
  const ModelPaths paths(cache, id);
  const auto commit = commit_on_disk(paths, id.revision_or_default());
  if (!commit) return nullptr;
  auto listed = read_list(paths, *commit);
  if (!listed.ok()) listed = list_of_snapshot(paths, *commit);
  auto chosen = choose_files(listed.value(), id, {});
  if (!chosen.ok() || !missing_files(paths, chosen.value()).empty()) return nullptr;
  auto model = std::make_shared<ShelvedModel>();
  model->files = std::move(chosen.value());
  for (const HubFile& file : model->files.files) {
    fs::path path = paths.blobs() / file.hash;
    std::error_code error;
    if (!fs::is_regular_file(fs::symlink_status(path, error))) {
      path = paths.snapshot(*commit) / file.name;  // if the file system has no links
      if (!fs::is_regular_file(fs::symlink_status(path, error))) return nullptr;
    }
    const auto stamp = stamp_of(path);
    if (!stamp.ok() || stamp.value().size != file.size) return nullptr;
    model->paths.push_back(std::move(path));
    model->stamps.push_back(stamp.value());
  }
  return model;
}

std::shared_ptr<const BegunModel> find_begun(const LocalCopy& place, const std::string& commit,
                                             uint64_t piece_bytes) {
  const ModelPaths paths(place.cache, place.id);
  const auto listed = read_list(paths, commit);
  if (!listed.ok()) return nullptr;
  auto chosen = choose_files(listed.value(), place.id, {});
  if (!chosen.ok()) return nullptr;
  return std::shared_ptr<const BegunModel>(
      new BegunModel{std::move(chosen.value()), PieceStore(paths.blobs(), piece_bytes)});
}

bool is_unchanged(const ShelvedModel& model) {
  for (size_t i = 0; i < model.paths.size(); ++i) {
    const auto stamp = stamp_of(model.paths[i]);
    if (!stamp.ok() || stamp.value() != model.stamps[i]) return false;
  }
  return true;
}

}  // namespace

bool is_local_path(std::string_view model) {
  return model.starts_with('/');
}

fs::path path_below(const fs::path& root, const std::string& path) {
  return root / fs::path(path).relative_path();
}

LocalCopy local_copy_of(const std::string& path, const fs::path& home) {
  const fs::path normal = (fs::path(path) / "").lexically_normal().parent_path();
  Hasher hasher(HashKind::kSha256);
  hasher.add(normal.string());
  return {home / "models",
          {.repository = "local/" + local_model_name(normal),
           .revision = "path-" + hasher.finish_hex().substr(0, 16),
           .file = normal.extension() == ".gguf" ? normal.filename().string() : ""}};
}

LocalCopy place_of(const std::string& model, const HubSettings& settings, const fs::path& home) {
  if (is_local_path(model)) return local_copy_of(model, home);
  const auto id = parse_model_id(model);
  return {settings.cache, id.ok() ? id.value() : ModelId{}};
}

LocalModels::LocalModels(HubSettings settings, fs::path home, fs::path root, uint64_t piece_bytes)
    : settings_(std::move(settings)),
      home_(std::move(home)),
      root_(std::move(root)),
      piece_bytes_(piece_bytes),
      hashes_(home_ / "models" / "hashes.json") {}

LocalModels::~LocalModels() {
  is_ending_.store(true, std::memory_order_relaxed);  // only a flag
  {
    const std::lock_guard lock(mutex_);
    changed_.notify_all();
  }
  if (hashing_.joinable()) hashing_.join();
}

void LocalModels::offer(const std::string& path) {
  if (!is_local_path(path)) return;
  const std::lock_guard lock(mutex_);
  if (offered_.size() < kOfferedMax) offered_.insert(path);
}

void LocalModels::forget(const std::string& model) {
  const std::lock_guard lock(mutex_);
  entries_.erase(model);
}

std::shared_ptr<const ShelvedParts> LocalModels::parts(const std::string& model) {
  std::error_code error;
  {
    const std::lock_guard lock(mutex_);
    const auto found = parts_.find(model);
    if (found != parts_.end() && fs::is_directory(found->second->folder, error)) {
      return found->second;
    }
  }
  if (is_shape_model(model) || (!is_local_path(model) && !parse_model_id(model).ok())) {
    return nullptr;
  }
  const LocalCopy place = place_of(model, settings_, home_);
  const ModelPaths paths(place.cache, place.id);
  const auto commit = commit_on_disk(paths, place.id.revision_or_default());
  if (!commit || !fs::is_directory(paths.parts(*commit), error)) return nullptr;
  const auto listed = read_list(paths, *commit);
  if (!listed.ok()) return nullptr;
  auto chosen = choose_files(listed.value(), place.id, {});
  return chosen.ok() ? begin_parts(model, chosen.value()) : nullptr;
}

std::shared_ptr<const BegunModel> LocalModels::begun(const std::string& model,
                                                     const std::string& commit) {
  const bool is_name = is_local_path(model) || parse_model_id(model).ok();
  if (commit.empty() || is_shape_model(model) || !is_name) return nullptr;
  {
    const std::lock_guard lock(mutex_);
    const auto found = begun_.find({model, commit});
    if (found != begun_.end() && Clock::now() - found->second.looked_at < kLocalModelsLookAgain) {
      return found->second.model;
    }
  }
  auto found = find_begun(place_of(model, settings_, home_), commit, piece_bytes_);
  const std::lock_guard lock(mutex_);
  if (begun_.size() >= kEntriesMax) begun_.clear();
  begun_[{model, commit}] = {found, Clock::now()};
  return found;
}

std::shared_ptr<const ShelvedParts> LocalModels::begin_parts(const std::string& model,
                                                             const ModelFiles& files) {
  const LocalCopy place = place_of(model, settings_, home_);
  const ModelPaths paths(place.cache, place.id);
  std::error_code error;
  const std::lock_guard lock(mutex_);
  auto& entry = parts_[model];
  const bool is_known = entry && entry->files.commit == files.commit &&
                        fs::is_directory(entry->folder, error);  // else it was deleted
  if (!is_known) {
    entry = std::make_shared<const ShelvedParts>(
        ShelvedParts{.files = files,
                     .store = std::make_shared<PieceStore>(paths.blobs(), piece_bytes_),
                     .folder = paths.parts(files.commit)});
  }
  return entry;
}

uint64_t LocalModels::room_for(const std::string& model) const {
  const uint64_t free = free_bytes_at(place_of(model, settings_, home_).cache).value_or(0);
  return free - std::min(free, kRoomSpareBytes);
}

LocalModels::Found LocalModels::find(const std::string& model) {
  if (is_local_path(model)) return look_at_local(model);  // has its own cache
  {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(model);
    if (found != entries_.end() && Clock::now() - found->second.looked_at < kLocalModelsLookAgain) {
      return found->second.model;
    }
  }
  auto found = TRY(look(model));
  const std::lock_guard lock(mutex_);
  if (entries_.size() >= kEntriesMax) entries_.clear();
  entries_[model] = {found, Clock::now()};
  return found;
}

LocalModels::Found LocalModels::look(const std::string& model) {
  std::shared_ptr<const ShelvedModel> found;
  if (is_shape_model(model)) return found;
  const auto id = parse_model_id(model);
  if (!id.ok()) return found;
  found = find_whole(settings_.cache, id.value());
  for (const fs::path& store : settings_.stores) {
    if (!found) found = find_whole(store, id.value());
  }
  return found;
}

LocalModels::Found LocalModels::look_at_local(const std::string& path) {
  std::error_code error;
  {
    std::unique_lock lock(mutex_);
    if (offered_.contains(path) && fs::exists(path_below(root_, path), error)) {
      const auto known = hashed_.find(path);
      if (known != hashed_.end() && known->second.ok() && is_unchanged(*known->second.value())) {
        return known->second;
      }
      if (known != hashed_.end() && !known->second.ok()) {
        const Error failed = known->second.error();  // reported once, then retried
        hashed_.erase(known);
        return failed;
      }
      if (std::find(to_hash_.begin(), to_hash_.end(), path) == to_hash_.end()) {
        hashed_.erase(path);
        to_hash_.push_back(path);
        if (!hashing_.joinable()) hashing_ = std::thread([this] { hash_offered(); });
        changed_.notify_all();
      }
      return Error{ErrorCode::kTimeout, fmt::format("the files of {} are being read", path)};
    }
  }
  const LocalCopy copy = local_copy_of(path, home_);
  const auto found = find_whole(copy.cache, copy.id);
  if (found) found->is_copy = true;
  return std::shared_ptr<const ShelvedModel>(found);
}

void LocalModels::hash_offered() {
  std::unique_lock lock(mutex_);
  // relaxed: set before the notification that wakes this thread
  while (!is_ending_.load(std::memory_order_relaxed)) {
    if (to_hash_.empty()) {
      changed_.wait(lock);
      continue;
    }
    const Status hashed = guarded([&] { hash_next(lock); });
    if (hashed.ok()) continue;
    if (!lock.owns_lock()) lock.lock();
    log_warn("node: the files of a model cannot be read: {}", hashed.error().message);
    if (!to_hash_.empty()) to_hash_.erase(to_hash_.begin());  // whoever asks again, adds it again
  }
}

// Reads the files of the first path of to_hash_, without the lock.
void LocalModels::hash_next(std::unique_lock<std::mutex>& lock) {
  const std::string path = to_hash_.front();
  lock.unlock();
  const auto local =
      guarded([&] { return list_local_files(path_below(root_, path), hashes_, &is_ending_); });
  auto model = std::make_shared<ShelvedModel>();
  if (local.ok()) {
    model->files = local.value().files;
    model->paths = local.value().paths;
    model->stamps = local.value().stamps;
  } else {
    log_warn("node: other nodes cannot copy {}: {}", path, local.error().message);
  }
  lock.lock();
  std::erase(to_hash_, path);
  hashed_.insert_or_assign(
      path, local.ok() ? Found(std::shared_ptr<const ShelvedModel>(model)) : Found(local.error()));
}

bool LocalModels::read(const ShelvedModel& model, const std::string& file_hash, uint32_t piece,
                       std::vector<std::byte>& bytes) const {
  for (size_t i = 0; i < model.files.files.size(); ++i) {
    if (model.files.files[i].hash != file_hash) continue;
    const PieceCut cut{model.files.files[i].size, piece_bytes_};
    if (piece >= cut.count()) return false;
    const ByteRange range = cut.range(piece);
    const auto fd = open_regular(model.paths[i], Links::kRefuse);
    const auto stamp = stamp_of(model.paths[i]);
    if (!fd.ok() || !stamp.ok() || stamp.value() != model.stamps[i]) return false;
    bytes.resize(range.size());
    return read_at(fd.value().get(), bytes, range.begin) == static_cast<ssize_t>(bytes.size());
  }
  return false;
}

}  // namespace lockstep
