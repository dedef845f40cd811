// Progress: what the computing thread of a worker does right now, readable by its heartbeat thread.
// Threads of a team tick while they compute; a collective says for which rank it waits. The node
// decides from it which rank is stuck.
#pragma once

#include <atomic>
#include <cstdint>

namespace lockstep {

struct Progress {
  enum State : int32_t {
    kIdle = -2,
    kComputing = -1
  };  // a value >= 0 is the rank that is waited for

  std::atomic<uint64_t> ticks{0};
  std::atomic<int32_t> state{kIdle};

  void tick() { ticks.fetch_add(1, std::memory_order_relaxed); }
  void set(int32_t value) {
    state.store(value, std::memory_order_relaxed);
    tick();
  }
};

}  // namespace lockstep
