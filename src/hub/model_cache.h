// The models on this machine's disk, in the layout of Hugging Face's cache, so that its tools and
// lockstep use each other's downloads:
//
//   CACHE/models--ORG--NAME/blobs/HASH                 a file's content
//                          /snapshots/COMMIT/PATH      a link to it
//                          /refs/REVISION              holds the commit
//                          /lockstep/COMMIT.json       our own: the files of a download
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

#include "base/files/unique_fd.h"
#include "base/result.h"
#include "hub/files/model_files.h"
#include "hub/files/model_id.h"
#include "hub/files/settings.h"

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
  // Used while only parts of the weights are here: links to them and to the small files, for
  // lockstep only, since other tools would read the holes as zeros.
  std::filesystem::path parts(std::string_view commit) const;
};

// Held while a model's folder is being changed; released when the process ends.
class ModelLock {
 public:
  // kExhausted if another process holds it.
  static Result<ModelLock> take(const std::filesystem::path& cache, const ModelId& id);

 private:
  explicit ModelLock(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

// The commit of a revision, as recorded on disk.
std::optional<std::string> commit_on_disk(const ModelPaths& paths, std::string_view revision);
// The files of a download of this commit. kNotFound if other tools downloaded it.
Result<ModelFiles> read_list(const ModelPaths& paths, std::string_view commit);
// Files of the list that are incomplete, and complete ones without a link.
std::vector<const HubFile*> missing_files(const ModelPaths& paths, const ModelFiles& files);
// Links the blobs into the snapshot and writes the reference: this makes the model findable.
Status publish(const ModelPaths& paths, const ModelFiles& files, std::string_view revision);

// Links files into parts(): whole files, and the partial file where only parts are here.
Status publish_parts(const ModelPaths& paths, const ModelFiles& files);
// The folder of a model with parts here; kNotFound.
Result<std::filesystem::path> find_parts(const ModelPaths& paths, std::string_view revision);

// Resolves a MODEL of the command line: an existing path stays as it is; the id of a model on this
// disk, or in one of the read-only stores, becomes the path of its folder or .gguf file. Anything
// else stays too, unless it can only be an id: kNotFound, with the command that downloads it.
Result<std::string> resolve_model(const std::string& model, const HubSettings& settings);

// "org/name" for the folder of a snapshot, from its path alone; empty for any other.
std::string repository_of_path(const std::filesystem::path& path);

struct CachedModel {
  std::string repository;
  std::string commit;
  std::vector<std::string> revisions;
  uint64_t size_bytes = 0;   // on this disk
  uint64_t whole_bytes = 0;  // of all its files; equals `size_bytes` without a list
  size_t files = 0;
  bool is_whole = true;
  std::filesystem::path path;
};

// Sorted by name. A missing cache holds none.
std::vector<CachedModel> list_models(const std::filesystem::path& cache);

// A model's revision in the cache, or else in a store that is one. Nullopt: neither has any of it.
std::optional<CachedModel> find_on_disk(const HubSettings& settings, const ModelId& id);

// Removes a model, or if the id names a revision, that one and the blobs that no other revision
// uses. Returns the bytes freed. kNotFound.
Result<uint64_t> remove_model(const HubSettings& settings, const ModelId& id);

}  // namespace lockstep
