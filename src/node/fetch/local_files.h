// The files that load a model from a local folder or .gguf file, listed as a hub would list them.
// Any thread.
#pragma once

#include <atomic>
#include <filesystem>
#include <vector>

#include "base/result.h"
#include "hub/files/model_files.h"
#include "node/fetch/file_hashes.h"

namespace lockstep {

struct LocalFiles {
  ModelFiles files;  // the commit is a digest of the list: equal folders have equal ones
  std::vector<std::filesystem::path> paths;  // of each file, links resolved
  std::vector<FileStamp> stamps;
};

// The same choice as for a hub's model (hub/files/choose_files.h). Files that link outside the
// folder are left out; a snapshot of a hub's cache may link into its model's folder. Reads every
// file whose hash is not cached. kNotFound, kInvalidArgument, kCancelled.
Result<LocalFiles> list_local_files(const std::filesystem::path& path, FileHashes& hashes,
                                    const std::atomic<bool>* cancelled);

// The name of the model at a path, fit for ModelId.
std::string local_model_name(const std::filesystem::path& path);

}  // namespace lockstep
