// PathWatch: notices that the network under a TCP connection carries nothing any more, by what the
// kernel has sent and nobody acknowledged. Used by TcpLink and by the side channel of VerbsLink;
// looked at only by a rank that waits. A peer whose process stands still is not a dead path: its
// kernel answers, also while its buffer is full. Where the kernel does not say what it waits for
// (macOS) it is asked to end such a connection itself. One thread.
#pragma once

#include <chrono>
#include <cstdint>

namespace lockstep {

// What a dead path is called.
inline constexpr const char* kDeadPath = "the network to it carries nothing any more";

class PathWatch {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // Between two looks at the kernel.
  static constexpr std::chrono::milliseconds kLookEvery{20};
  // Without an answer to what was sent and sent again. Three attempts fall into it.
  static constexpr std::chrono::milliseconds kSilenceMax{1'000};
  // Without an answer to the second question, one second after the first, on an idle connection.
  static constexpr std::chrono::milliseconds kIdleSilenceMax{300};

  // What the kernel knows of a connection.
  struct Counters {
    uint32_t unacknowledged = 0;  // segments
    uint32_t repeats = 0;         // of the oldest of them
    uint32_t probes = 0;          // questions without an answer: of a full or idle peer
    bool is_idle_probe = false;   // of an idle one
    std::chrono::milliseconds answer_age{0};
  };

  // The kernel asks the other end of an idle connection once a second whether it is there.
  static void prepare(int socket);

  // True from when the path is known to be dead. Cheap between two looks.
  bool is_dead(int socket);
  // The rule itself. Time in which nobody looked counts little: we may not have run either.
  bool judge(const Counters& counters, Time now);

 private:
  Time looked_{};
  Time asked_{};  // since when the kernel waits for an answer
  std::chrono::nanoseconds silence_{0};
  bool is_asking_ = false;
  bool is_dead_ = false;
};

}  // namespace lockstep
