// What the queue pairs of libfakeverbs.so share between processes: their states and inboxes.
#pragma once

#include <sched.h>

#include <atomic>
#include <cstdint>

#include "fake_verbs/fake_verbs.h"

namespace lockstep {

struct FakeMessage {
  uint32_t bytes;
  std::byte data[kFakeMessageBytes];
};

// The far end's view of a queue pair. Its number is kFirstNumber + its index.
struct FakeQueuePairSlot {
  static constexpr uint32_t kFirstNumber = 0x100;

  std::atomic<uint32_t> lock;
  bool is_used;
  bool can_receive;      // from RTR on
  uint32_t destination;  // number of the queue pair it is connected to
  uint32_t receives;     // RECVs posted and not yet filled
  uint32_t first;
  uint32_t count;
  FakeMessage inbox[kFakeInboxMessages];
};

// Starts as zeros, which is valid.
struct FakeWire {
  FakeVerbs controls;
  std::atomic<int> is_ready;
  FakeQueuePairSlot queue_pairs[kFakeQueuePairs];
};

FakeWire& fake_wire();

class FakeLock {
 public:
  explicit FakeLock(FakeQueuePairSlot& slot) : slot_(slot) {
    // Acquire and release: the holder sees what the last one wrote.
    while (slot_.lock.exchange(1, std::memory_order_acquire) != 0) ::sched_yield();
  }
  ~FakeLock() { slot_.lock.store(0, std::memory_order_release); }
  FakeLock(const FakeLock&) = delete;
  FakeLock& operator=(const FakeLock&) = delete;

 private:
  FakeQueuePairSlot& slot_;
};

// Null for a number that nobody has.
FakeQueuePairSlot* fake_queue_pair(uint32_t number);
// Under its lock: room for one more message, or null if its inbox is full.
FakeMessage* fake_message_slot(FakeQueuePairSlot& slot);

}  // namespace lockstep
