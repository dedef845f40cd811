// One machine of the simulation: a disk, processes, a clock, and the Brain while it runs.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "cluster/brain/brain.h"

namespace lockstep {

struct SimulatedNode {
  NodeId id;
  int64_t budget_bytes = 0;
  bool is_spare = false;
  bool has_joined = false;
  bool has_left = false;  // for good
  int64_t life = 0;       // counts starts; events of an earlier life are dropped
  int64_t paused_until_ms = 0;
  int64_t wall_offset_ms = 0;
  std::unique_ptr<Brain> brain;  // null while it is down

  DesiredState disk;
  bool disk_refuses = false;
  int64_t disk_ms = 5;  // a write takes up to this
  std::shared_ptr<const DesiredState> writing;

  std::map<std::string, bool> plans;  // by their inputs: whether they are done

  // The running processes of parts and the memory they use.
  std::map<std::pair<std::string, PlacementEpoch>, int64_t> running;

  bool is_up() const { return brain != nullptr; }
  int64_t used_bytes() const {
    int64_t bytes = 0;
    for (const auto& [part, used] : running) bytes += used;
    return bytes;
  }
};

}  // namespace lockstep
