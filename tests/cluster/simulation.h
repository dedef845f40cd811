// A cluster of Brains in one thread, with a fake network, disks, processes and clocks, all drawn
// from one seed: messages are delayed, lost, duplicated and reordered, links carry only one way,
// machines crash, pause, lose their disks, join and leave, wall clocks are wrong and jump, disks
// are slow or refuse writes, parts fail. Wild times alternate with calm ones. Invariants are
// checked after every event, and convergence at the end of each calm time. The same seed gives the
// same run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace lockstep {

// Deliberate mistakes, to show that the checks can fail.
enum class Sabotage {
  kNone,
  kDiskLies,     // acknowledges writes without doing them
  kGreedyParts,  // parts use more memory than was promised
  kOneLife,      // a restarted node has the same incarnation
  kNoUpdates,    // nodes never get desired entries from each other
  kNoStarts,     // orders to start never arrive
  kDisksForget,  // a disk loses an entry now and then
  kLostGroups,   // a lost group is not formed again while others remain
};

struct SimulationOptions {
  uint64_t seed = 1;
  int64_t minutes = 10;
  bool prints = false;  // each event that is not routine, to stdout
  Sabotage sabotage = Sabotage::kNone;
};

struct SimulationResult {
  std::optional<std::string> failure;  // when and what
  uint64_t trace = 0;                  // a hash of all events: equal for equal runs
  int64_t events = 0;
  int64_t crashes = 0;
  int64_t disks_lost = 0;
  int64_t writes = 0;      // acknowledged user writes
  int64_t placements = 0;  // started
  int64_t calm_checks = 0;
  int64_t ready_checks = 0;  // groups found ready exactly once at the end of a calm time
};

SimulationResult simulate(const SimulationOptions& options);

}  // namespace lockstep
