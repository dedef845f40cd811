// LocalModels: the whole models on this machine's disk, as offered to other nodes: those of the
// hub's cache and of the stores, by their names; local folders and files that were offered because
// the cluster is to run them; and copies of other nodes' folders. Only files that load a model are
// given away: weights, configuration, tokenizer. Files are found by the hash in the model's list,
// never by a path from the network. Any thread; calls read the disk.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/result.h"
#include "hub/files/model_files.h"
#include "hub/files/piece_store.h"
#include "hub/files/settings.h"
#include "hub/model_cache.h"
#include "node/fetch/file_hashes.h"

namespace lockstep {

struct ShelvedModel {
  ModelFiles files;                          // the files that load it, all here
  std::vector<std::filesystem::path> paths;  // of each file, links resolved
  std::vector<FileStamp> stamps;             // when last examined
  bool is_copy = false;                      // of another node's folder
};

// A copy of another node's folder or file is kept as a model in a separate cache,
// FOLDER/models--local--NAME, whose revision stands for the path.
struct LocalCopy {
  std::filesystem::path cache;
  ModelId id;
};
LocalCopy local_copy_of(const std::string& path, const std::filesystem::path& home);

// Where copies and downloads of a model are kept: the cache, and the model's name in it.
LocalCopy place_of(const std::string& model, const HubSettings& settings,
                   const std::filesystem::path& home);

// A model with parts of its weights' files here.
struct ShelvedParts {
  ModelFiles files;
  std::shared_ptr<PieceStore> store;  // shared by all readers and writers
  std::filesystem::path folder;       // can be loaded (PartialFiles::kAllowed)
};

// A model whose download has begun and is incomplete.
struct BegunModel {
  ModelFiles files;
  PieceStore store;  // for peeking into
};

// Whether the text is the path of a folder or file, not the name of a model of a hub.
bool is_local_path(std::string_view model);
// Where such a path is, if this machine's file system has its root at `root`.
std::filesystem::path path_below(const std::filesystem::path& root, const std::string& path);

class LocalModels {
 public:
  static constexpr size_t kOfferedMax = 1024;
  static constexpr size_t kFilesMax = 10'000;  // of one folder

  // `home`: this node's own folder; copies are in home/models. `root`: see path_below().
  LocalModels(HubSettings settings, std::filesystem::path home, std::filesystem::path root = "/",
              uint64_t piece_bytes = kFilePieceBytes);
  ~LocalModels();

  // The cluster wants to run this path: other nodes may copy it from here. Beyond kOfferedMax it is
  // not offered.
  void offer(const std::string& path);

  // Null: not here, or not whole. kTimeout: its files are being hashed, retry.
  Result<std::shared_ptr<const ShelvedModel>> find(const std::string& model);
  // Null if no part is here.
  std::shared_ptr<const ShelvedParts> parts(const std::string& model);
  // The files of this commit downloaded so far, for other nodes; null if no download has begun.
  std::shared_ptr<const BegunModel> begun(const std::string& model, const std::string& commit);
  // For a fetch that holds the model's lock, before its first piece.
  std::shared_ptr<const ShelvedParts> begin_parts(const std::string& model,
                                                  const ModelFiles& files);
  // Bytes that further pieces of the model may use on this disk.
  uint64_t room_for(const std::string& model) const;
  // To be called after a change on this disk.
  void forget(const std::string& model);

  // False if the file has changed since it was examined, or the piece does not exist.
  bool read(const ShelvedModel& model, const std::string& file_hash, uint32_t piece,
            std::vector<std::byte>& bytes) const;

  // How this node cuts files.
  uint64_t piece_bytes() const { return piece_bytes_; }

 private:
  using Clock = std::chrono::steady_clock;
  using Found = Result<std::shared_ptr<const ShelvedModel>>;
  template <class Model>
  struct Entry {
    std::shared_ptr<const Model> model;
    Clock::time_point looked_at;
  };
  Found look(const std::string& model);
  Found look_at_local(const std::string& path);
  void hash_offered();
  void hash_next(std::unique_lock<std::mutex>& lock);

  const HubSettings settings_;
  const std::filesystem::path home_;
  const std::filesystem::path root_;
  const uint64_t piece_bytes_;
  FileHashes hashes_;
  std::atomic<bool> is_ending_{false};

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::map<std::string, Entry<ShelvedModel>> entries_;
  std::map<std::pair<std::string, std::string>, Entry<BegunModel>> begun_;  // with the commit
  std::map<std::string, std::shared_ptr<const ShelvedParts>> parts_;
  std::set<std::string> offered_;
  std::deque<std::string> to_hash_;  // paths, for the hashing thread
  std::map<std::string, Found> hashed_;
  std::thread hashing_;
};

}  // namespace lockstep
