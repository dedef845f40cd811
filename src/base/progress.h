// Progress: what the computing thread of a worker is doing, readable by its heartbeat thread.
// Threads of a team tick while they compute; a collective records the rank it waits for. From this
// the node decides which rank is stuck.
#pragma once

#include <atomic>
#include <cstdint>

namespace lockstep {

struct Progress {
  enum State : int32_t {
    kIdle = -2,
    kComputing = -1
  };  // a value >= 0 is the rank that it waits for

  std::atomic<uint64_t> ticks{0};
  std::atomic<int32_t> state{kIdle};
  // Weights of a model that are being loaded: bytes of this rank's parts, and those that are read
  // and laid out. Set by the loading thread; 0: not known yet. Only for people (relaxed).
  std::atomic<uint64_t> whole_bytes{0};
  std::atomic<uint64_t> read_bytes{0};

  void tick() { ticks.fetch_add(1, std::memory_order_relaxed); }
  void set(int32_t value) {
    state.store(value, std::memory_order_relaxed);
    tick();
  }
};

}  // namespace lockstep
