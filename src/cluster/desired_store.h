// DesiredStore: the desired state in a folder of this machine's disk. A write is a new file,
// flushed, that takes the old one's name; the old one is kept beside it. What is torn or damaged is
// noticed, named and set aside, and the one before is used. One thread.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/desired_state.h"

namespace lockstep {

class DesiredStore {
 public:
  struct Opened;

  // Creates the folder. kInternal where the disk refuses; damaged files are only notes.
  static Result<Opened> open(const std::filesystem::path& folder);

  // Back only when the disk has it.
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
