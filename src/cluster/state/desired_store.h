// DesiredStore: the desired state in a folder of this machine's disk. A write makes and flushes a
// new file that takes the old one's name; the old one is kept under another. A torn or damaged file
// is detected, reported and set aside, and the previous one is used. One thread.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/state/desired_state.h"

namespace lockstep {

class DesiredStore {
 public:
  struct Opened;

  // Creates the folder. kInternal if the disk fails to read or to rename; damaged files only yield
  // notes, and each is kept under its own name.
  static Result<Opened> open(const std::filesystem::path& folder);

  // Returns once it is on disk.
  Status save(const DesiredState& state);

 private:
  explicit DesiredStore(std::filesystem::path folder) : folder_(std::move(folder)) {}

  std::filesystem::path folder_;
};

struct DesiredStore::Opened {
  DesiredStore store;
  DesiredState state;
  std::vector<std::string> notes;  // sentences about files that could not be used
};

}  // namespace lockstep
