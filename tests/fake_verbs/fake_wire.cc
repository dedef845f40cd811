#include "fake_verbs/fake_wire.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string_view>

namespace lockstep {
namespace {

FakeMode mode_from_environment() {
  const char* const named = std::getenv("LOCKSTEP_FAKE_VERBS_MODE");
  const std::string_view mode = named == nullptr ? "" : named;
  if (mode == "apple") return FakeMode::kApple;
  return mode == "lossy" ? FakeMode::kLossy : FakeMode::kReliable;
}

FakeWire& map_wire() {
  int fd = -1;
  if (const char* const file = std::getenv("LOCKSTEP_FAKE_VERBS_FILE")) {
    fd = ::open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ::ftruncate(fd, sizeof(FakeWire)) != 0) std::abort();
  }
  const int flags = MAP_SHARED | (fd < 0 ? MAP_ANONYMOUS : 0);
  void* const memory = ::mmap(nullptr, sizeof(FakeWire), PROT_READ | PROT_WRITE, flags, fd, 0);
  if (memory == MAP_FAILED) std::abort();
  if (fd >= 0) ::close(fd);
  auto& wire = *static_cast<FakeWire*>(memory);
  if (wire.is_ready.exchange(1) == 0) {
    wire.controls.mode = static_cast<int>(mode_from_environment());
    wire.controls.device_count = 1;
    wire.controls.message_bytes_max = kFakeMessageBytes;
    wire.controls.opens_left = std::numeric_limits<int>::max();
  }
  return wire;
}

FakeOwner* find_owner(int pid) {
  for (FakeOwner& owner : fake_wire().owners) {
    if (owner.pid == pid) return &owner;
  }
  return nullptr;
}

// This process's slot; at first use a free one or a dead process's.
FakeOwner& own_place() {
  const int own = ::getpid();
  if (FakeOwner* const found = find_owner(own)) return *found;
  for (FakeOwner& owner : fake_wire().owners) {
    int before = owner.pid;
    if (before != 0 && is_alive(before)) continue;
    if (!owner.pid.compare_exchange_strong(before, own)) continue;
    FakeObjects& objects = owner.objects;
    objects.contexts = objects.domains = objects.regions = 0;
    objects.completion_queues = objects.queue_pairs = 0;
    return owner;
  }
  std::abort();  // more processes than slots
}

}  // namespace

bool is_alive(int pid) {
  return pid == 0 || ::kill(pid, 0) == 0 || errno != ESRCH;
}

void count_objects(std::atomic<int> FakeObjects::*kind, int change) {
  fake_wire().controls.*kind += change;
  own_place().objects.*kind += change;
}

FakeWire& fake_wire() {
  static FakeWire& wire = map_wire();
  return wire;
}

FakeQueuePairSlot* fake_queue_pair(uint32_t number) {
  const uint32_t index = number - FakeQueuePairSlot::kFirstNumber;
  return index < kFakeQueuePairs ? &fake_wire().queue_pairs[index] : nullptr;
}

bool deliver(FakeQueuePairSlot& slot, const void* bytes, uint32_t size, bool is_held) {
  if (slot.count >= slot.receives) ++fake_wire().controls.early_messages;
  if (slot.count == kFakeInboxMessages) return false;
  FakeMessage& message = slot.inbox[(slot.first + slot.count) % kFakeInboxMessages];
  message.bytes = size;
  message.is_held = is_held;
  slot.waiting_bytes += size;
  std::memcpy(message.data, bytes, size);
  // A sender killed before this line has sent nothing; release: the message is complete when
  // counted.
  std::atomic_thread_fence(std::memory_order_release);
  ++slot.count;
  return true;
}

void remove_first(FakeQueuePairSlot& slot) {
  slot.waiting_bytes -= slot.inbox[slot.first].bytes;
  slot.first = (slot.first + 1) % kFakeInboxMessages;
  --slot.count;
  --slot.receives;
}

void empty_inbox(FakeQueuePairSlot& slot) {
  slot.receives = slot.count = 0;
  slot.waiting_bytes = 0;
}

bool has_ring_room(uint32_t port, uint64_t bytes) {
  for (const FakeQueuePairSlot& slot : fake_wire().queue_pairs) {
    if (slot.port == port) bytes += slot.waiting_bytes;
  }
  return bytes <= kFakeApplePortBytes;
}

}  // namespace lockstep

// The controls, for tests that load the library.
extern "C" {

__attribute__((visibility("default"))) lockstep::FakeVerbs* fake_verbs_controls() {
  return &lockstep::fake_wire().controls;
}

__attribute__((visibility("default"))) bool fake_verbs_inject(uint32_t queue_pair,
                                                              const void* bytes, size_t size) {
  lockstep::FakeQueuePairSlot* const slot = lockstep::fake_queue_pair(queue_pair);
  if (slot == nullptr || size > lockstep::kFakeMessageBytes) return false;
  const lockstep::FakeLock lock(*slot);
  return lockstep::deliver(*slot, bytes, static_cast<uint32_t>(size));
}

__attribute__((visibility("default"))) lockstep::FakeObjects* fake_verbs_objects_of(int pid) {
  lockstep::FakeOwner* const owner = lockstep::find_owner(pid);
  return owner == nullptr ? nullptr : &owner->objects;
}
}
