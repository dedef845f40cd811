// GroupMonitor: decides from the messages of one epoch's workers whether the group is broken, which
// rank broke it, and why. A pure state machine over observations and a clock that the caller passes
// in; one thread. It ends nothing itself.
//
// One loss makes every other rank fail too ("rank 1 is gone"), often before we see the loss itself.
// So a failure that blames other ranks waits a moment for the true cause.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "node/wire/messages.h"

namespace lockstep {

struct MonitorTimeouts {
  // A process without a heartbeat (one every 250 ms) for this long is stopped or hung.
  std::chrono::milliseconds heartbeat{1500};
  // Computing without a tick for this long.
  std::chrono::milliseconds progress{10'000};
  // Loading keeps disks and page tables busy; heartbeats may come late then.
  std::chrono::milliseconds loading_heartbeat{10'000};
};

// How sentences name a rank: "rank 1 on studio-2 (pid 77)".
struct WatchedRank {
  int64_t pid = 0;     // 0: not known
  std::string node{};  // empty: this machine
};

class GroupMonitor {
 public:
  using Time = std::chrono::steady_clock::time_point;

  struct Verdict {
    int rank = 0;
    Error error;
    bool must_go = true;  // its process is unusable
  };

  GroupMonitor(std::vector<WatchedRank> ranks, MonitorTimeouts timeouts, Time now);

  // Any message proves that the process runs; a heartbeat also says what it does.
  void heard(int rank, Time now) { at(rank).heard = now; }
  void heartbeat(int rank, Heartbeat heartbeat, Time now);
  void ready(int rank, Time now);
  bool is_ready() const;
  // The rank has left the epoch by itself and could join another.
  void left(int rank, Error error, Time now);
  // The rank's last message.
  void fatal(int rank, Error error, Time now);
  // The rank's process ended: "exited with status 1", "was killed by signal 9 (SIGKILL)".
  void ended(int rank, const std::string& how, Time now);
  // The rank sent something invalid, or does not read: it must end.
  void misbehaved(int rank, const Error& error);
  // The supervising thread itself did not run for this long: no rank's fault.
  void stalled(std::chrono::nanoseconds duration);

  std::optional<Verdict> check(Time now);
  // Whether it counts as stopped or hung, whatever else is known.
  bool is_silent(int rank, Time now) const;
  // When check() may give another answer without an observation.
  Time next_deadline() const;

 private:
  struct Rank {
    WatchedRank watched;
    bool ready = false;
    Time heard;  // the last heartbeat
    Time moved;  // the last tick, or the last time it did not have to tick
    Heartbeat last;
    std::optional<Error> fatal;
    std::optional<Time> fatal_at;
    bool has_left = false;  // and its process runs
  };

  Rank& at(int rank) { return ranks_[static_cast<size_t>(rank)]; }
  std::string name(int rank) const;
  void blame(int rank, ErrorCode code, std::string message, bool must_go = true);
  std::chrono::milliseconds silence_allowed() const;

  MonitorTimeouts timeouts_;
  std::vector<Rank> ranks_;
  std::optional<Verdict> verdict_;
};

}  // namespace lockstep
