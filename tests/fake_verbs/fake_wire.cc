#include "fake_verbs/fake_wire.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
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
  }
  return wire;
}

}  // namespace

FakeWire& fake_wire() {
  static FakeWire& wire = map_wire();
  return wire;
}

FakeQueuePairSlot* fake_queue_pair(uint32_t number) {
  const uint32_t index = number - FakeQueuePairSlot::kFirstNumber;
  return index < kFakeQueuePairs ? &fake_wire().queue_pairs[index] : nullptr;
}

FakeMessage* fake_message_slot(FakeQueuePairSlot& slot) {
  if (slot.count >= slot.receives) ++fake_wire().controls.early_messages;
  if (slot.count == kFakeInboxMessages) return nullptr;
  return &slot.inbox[(slot.first + slot.count++) % kFakeInboxMessages];
}

}  // namespace lockstep

// The controls, for tests that have loaded the library.
extern "C" {

__attribute__((visibility("default"))) lockstep::FakeVerbs* fake_verbs_controls() {
  return &lockstep::fake_wire().controls;
}

__attribute__((visibility("default"))) bool fake_verbs_inject(uint32_t queue_pair,
                                                              const void* bytes, size_t size) {
  lockstep::FakeQueuePairSlot* const slot = lockstep::fake_queue_pair(queue_pair);
  if (slot == nullptr || size > lockstep::kFakeMessageBytes) return false;
  const lockstep::FakeLock lock(*slot);
  lockstep::FakeMessage* const message = lockstep::fake_message_slot(*slot);
  if (message == nullptr) return false;
  message->bytes = static_cast<uint32_t>(size);
  std::memcpy(message->data, bytes, size);
  return true;
}
}
