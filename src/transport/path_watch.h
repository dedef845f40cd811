// PathWatch: detects that the network under a TCP connection is dead, from what the kernel sent
// without an acknowledgement. Used by TcpLink and by the side channel of VerbsLink; checked only by
// a waiting rank. A stopped peer process is not a dead path: its kernel still answers, even while
// its buffer is full. Where the kernel gives no such figures (macOS), it is asked to end a dead
// connection itself. One thread.
#pragma once

#include <chrono>
#include <cstdint>

namespace lockstep {

// The error text for a dead path.
inline constexpr const char* kDeadPath = "the network connection to it is dead";

class PathWatch {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // Between two queries of the kernel.
  static constexpr std::chrono::milliseconds kLookEvery{20};
  // Without an answer to a segment that was retransmitted. Covers three attempts.
  static constexpr std::chrono::milliseconds kSilenceMax{1'000};
  // Without an answer to the second probe, one second after the first, on an idle connection.
  static constexpr std::chrono::milliseconds kIdleSilenceMax{300};

  // The kernel's figures for a connection.
  struct Counters {
    uint32_t unacknowledged = 0;  // segments
    uint32_t repeats = 0;         // retransmissions of the oldest of them
    uint32_t probes = 0;          // unanswered probes of a full or idle peer
    bool is_idle_probe = false;   // the probes are of an idle peer
    std::chrono::milliseconds answer_age{0};
  };

  // The kernel probes the other end of an idle connection once a second.
  static void prepare(int socket);

  // True once the path is known to be dead. Cheap between two queries.
  bool is_dead(int socket);
  // The rule itself. Time between distant queries counts little: we may not have run either.
  bool judge(const Counters& counters, Time now);

 private:
  Time looked_{};
  Time asked_{};  // since when the kernel has been waiting for an answer
  std::chrono::nanoseconds silence_{0};
  bool is_asking_ = false;
  bool is_dead_ = false;
};

}  // namespace lockstep
