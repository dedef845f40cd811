// The models on this machine's disk, in the layout of Hugging Face's cache, so that its tools and
// lockstep use each other's downloads:
//
//   CACHE/models--ORG--NAME/blobs/HASH                 a file's content
//                          /snapshots/COMMIT/PATH      a link to it
//                          /refs/REVISION              holds the commit
//                          /lockstep/COMMIT.json       our own: the files that a download is to
//                          bring
//                          /lockstep/COMMIT.parts/     links to files of which parts are here
//
// Any thread; processes exclude each other by ModelLock.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "hub/model_files.h"
#include "hub/model_id.h"
#include "hub/settings.h"

namespace lockstep {

struct ModelPaths {
  std::filesystem::path folder;  // CACHE/models--ORG--NAME

  ModelPaths(const std::filesystem::path& cache, const ModelId& id);
  std::filesystem::path blobs() const { return folder / "blobs"; }
  std::filesystem::path snapshot(std::string_view commit) const {
    return folder / "snapshots" / commit;
  }
  std::filesystem::path reference(std::string_view revision) const {
    return folder / "refs" / revision;
  }
  std::filesystem::path list(std::string_view commit) const;  // the .json
  // Where only parts of the weights are here: links to them and to the small files, for lockstep's
  // own eyes, since other tools would take the holes for zeros.
  std::filesystem::path parts(std::string_view commit) const;
};

// Held while a model's folder is changed. It ends with the process.
class ModelLock {
 public:
  // kExhausted if another process holds it.
  static Result<ModelLock> take(const std::filesystem::path& cache, const ModelId& id);

 private:
  explicit ModelLock(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

// The commit of a revision, as far as the disk knows.
std::optional<std::string> commit_on_disk(const ModelPaths& paths, std::string_view revision);
// What a download of this commit was to bring. kNotFound where other tools brought it.
Result<ModelFiles> read_list(const ModelPaths& paths, std::string_view commit);
// Files of the list that are not there in full, and those that are but have no link yet.
std::vector<const HubFile*> missing_files(const ModelPaths& paths, const ModelFiles& files);
// Links the blobs into the snapshot and writes the reference: from here on the model is found.
Status publish(const ModelPaths& paths, const ModelFiles& files, std::string_view revision);

// Links the files into parts(): the whole ones, and in the others' places what is here of them.
Status publish_parts(const ModelPaths& paths, const ModelFiles& files);
// The folder of a model of which parts are here; kNotFound.
Result<std::filesystem::path> find_parts(const ModelPaths& paths, std::string_view revision);

// What a MODEL on the command line stands for: a path that exists stays as it is; the id of a model
// on this disk, or in one of the read-only stores, becomes the path of its folder or .gguf file.
// What is neither stays too, unless it can only be an id: kNotFound, with the command that
// downloads it.
Result<std::string> resolve_model(const std::string& model, const HubSettings& settings);

// "org/name" for the folder of a snapshot, by its path alone; empty for any other.
std::string repository_of_path(const std::filesystem::path& path);

struct CachedModel {
  std::string repository;
  std::string commit;
  std::vector<std::string> revisions;
  uint64_t size_bytes = 0;   // on this disk
  uint64_t whole_bytes = 0;  // of all its files; as `size_bytes` where no list says
  size_t files = 0;
  bool is_whole = true;
  std::filesystem::path path;
};

// In the order of their names. A cache that is not there holds none.
std::vector<CachedModel> list_models(const std::filesystem::path& cache);

// What of a model's revision is in the cache, or else in a store that is one. Nullopt: nothing.
std::optional<CachedModel> find_on_disk(const HubSettings& settings, const ModelId& id);

// Removes a model, or where the id names a revision, that one and the blobs that no other revision
// uses. The bytes that came free. kNotFound.
Result<uint64_t> remove_model(const HubSettings& settings, const ModelId& id);

}  // namespace lockstep
