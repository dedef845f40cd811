// State shared by the queue pairs of libfakeverbs.so across processes: their states and inboxes.
#pragma once

#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

#include "fake_verbs/fake_verbs.h"

namespace lockstep {

struct FakeMessage {
  uint32_t bytes;
  bool is_held;  // while its port is held_port
  std::byte data[kFakeMessageBytes];
};

// A queue pair as the far end sees it. Its number is kFirstNumber + its index.
struct FakeQueuePairSlot {
  static constexpr uint32_t kFirstNumber = 0x100;

  std::atomic<int> lock;  // the process that holds it
  int owner;              // the process that owns the queue pair; 0: free
  bool can_receive;       // from RTR on
  uint32_t destination;   // number of the queue pair it is connected to
  uint32_t receives;      // RECVs posted and not yet filled
  // Both are read without the lock: a sender adds up a port's ring.
  std::atomic<uint32_t> port;           // number of its context's port
  std::atomic<uint64_t> waiting_bytes;  // of the messages in the inbox
  uint32_t first;
  uint32_t count;
  FakeMessage inbox[kFakeInboxMessages];
};

// The objects of one process, found by its process id.
struct FakeOwner {
  std::atomic<int> pid;
  FakeObjects objects;
};

// Valid when filled with zeros.
struct FakeWire {
  FakeVerbs controls;
  std::atomic<int> is_ready;
  FakeOwner owners[kFakeOwners];
  FakeQueuePairSlot queue_pairs[kFakeQueuePairs];
};

FakeWire& fake_wire();

// False once it has exited and its parent has reaped it.
bool is_alive(int pid);

// A process that is killed does not keep the lock.
class FakeLock {
 public:
  explicit FakeLock(FakeQueuePairSlot& slot) : slot_(slot) {
    for (int holder = 0; !try_to_take(holder); holder = is_alive(holder) ? 0 : holder) {
      ::sched_yield();
    }
  }
  ~FakeLock() { slot_.lock.store(0, std::memory_order_release); }
  FakeLock(const FakeLock&) = delete;
  FakeLock& operator=(const FakeLock&) = delete;

 private:
  // Takes the lock if `holder` has it (0: free); if not, sets `holder` to the process that has.
  // Acquire and release: the new holder sees what the previous one wrote.
  bool try_to_take(int& holder) {
    return slot_.lock.compare_exchange_strong(holder, ::getpid(), std::memory_order_acquire);
  }

  FakeQueuePairSlot& slot_;
};

// Adds to the shared and this process's count of this kind of objects.
void count_objects(std::atomic<int> FakeObjects::*kind, int change);

// Null for an unused number.
FakeQueuePairSlot* fake_queue_pair(uint32_t number);
// Whether this many more bytes fit into the ring of a port.
bool has_ring_room(uint32_t port, uint64_t bytes);
// The rest is called with the slot's lock held. Puts a message into its inbox; false if that is
// full.
bool deliver(FakeQueuePairSlot& slot, const void* bytes, uint32_t size, bool is_held = false);
// Takes the first message out.
void remove_first(FakeQueuePairSlot& slot);
void empty_inbox(FakeQueuePairSlot& slot);

}  // namespace lockstep
