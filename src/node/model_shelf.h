// ModelShelf: the models that lie whole on this machine's disk, as other nodes may have them: those
// of the hub's cache and of the stores, by their names; folders and files of this machine that were
// offered, because the cluster is to run them; and copies of other nodes' folders. Of a model only
// what loads it is given away: weights, configuration, tokenizer. A file is found by the hash that
// the model's list has for it, never by a path of whoever asks. Any thread; calls read the disk.
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
#include "hub/model_cache.h"
#include "hub/model_files.h"
#include "hub/piece_store.h"
#include "hub/settings.h"
#include "node/file_hashes.h"

namespace lockstep {

struct ShelvedModel {
  ModelFiles files;                          // what loads it, all of it there
  std::vector<std::filesystem::path> paths;  // of each file, without links
  std::vector<FileStamp> stamps;             // when it was looked at
  bool is_copy = false;                      // of another node's folder
};

// How a copy of another node's folder or file is kept: as a model of a cache of its own,
// FOLDER/models--local--NAME, whose revision stands for the path.
struct LocalCopy {
  std::filesystem::path cache;
  ModelId id;
};
LocalCopy local_copy_of(const std::string& path, const std::filesystem::path& home);

// Where copies and downloads of a model lie: the cache, and the model's name in it.
LocalCopy place_of(const std::string& model, const HubSettings& settings,
                   const std::filesystem::path& home);

// A model of which parts of the weights' files are here.
struct ShelvedParts {
  ModelFiles files;
  std::shared_ptr<PieceStore> store;  // one for all who read and write it
  std::filesystem::path folder;       // what can be loaded (PartialFiles::kAllowed)
};

// A model of which a download was begun, and has not brought all yet.
struct BegunModel {
  ModelFiles files;
  PieceStore store;  // to peek into
};

// Whether the text is the path of a folder or file, rather than the name of a model of a hub.
bool is_local_path(std::string_view model);
// Where such a path lies, if the root of this machine's file system is at `root`.
std::filesystem::path path_below(const std::filesystem::path& root, const std::string& path);

class ModelShelf {
 public:
  static constexpr size_t kOfferedMax = 1024;
  static constexpr size_t kFilesMax = 10'000;  // of one folder

  // `home`: where this node keeps its own things; copies lie in home/models. `root`: as for
  // path_below().
  ModelShelf(HubSettings settings, std::filesystem::path home, std::filesystem::path root = "/",
             uint64_t piece_bytes = kFilePieceBytes);
  ~ModelShelf();

  // A path that the cluster wants to run: from now on other nodes may copy it from here. Beyond
  // kOfferedMax it is not offered.
  void offer(const std::string& path);

  // Null: not here, or not whole. kTimeout: its files are being hashed, ask again.
  Result<std::shared_ptr<const ShelvedModel>> find(const std::string& model);
  // Null where no part is here.
  std::shared_ptr<const ShelvedParts> parts(const std::string& model);
  // What a download of this commit has brought so far, for other nodes; null where none was begun.
  std::shared_ptr<const BegunModel> begun(const std::string& model, const std::string& commit);
  // For a fetch, which holds the model's lock, before its first piece.
  std::shared_ptr<const ShelvedParts> begin_parts(const std::string& model,
                                                  const ModelFiles& files);
  // Bytes that pieces of the model may take of this disk beyond what is there.
  uint64_t room_for(const std::string& model) const;
  // After a change on this disk.
  void forget(const std::string& model);

  // False where the file is not what it was when it was looked at, or the piece does not exist.
  static bool read(const ShelvedModel& model, const std::string& file_hash, uint32_t piece,
                   uint64_t piece_bytes, std::vector<std::byte>& bytes);

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

  const HubSettings settings_;
  const std::filesystem::path home_;
  const std::filesystem::path root_;
  const uint64_t piece_bytes_;
  FileHashes hashes_;
  std::atomic<bool> is_ending_{false};

  std::mutex mutex_;  // of all that follows
  std::condition_variable changed_;
  std::map<std::string, Entry<ShelvedModel>> entries_;
  std::map<std::pair<std::string, std::string>, Entry<BegunModel>> begun_;  // with the commit
  std::map<std::string, std::shared_ptr<const ShelvedParts>> parts_;
  std::set<std::string> offered_;
  std::deque<std::string> to_hash_;  // paths, for the thread
  std::map<std::string, Found> hashed_;
  std::thread hashing_;
};

}  // namespace lockstep
