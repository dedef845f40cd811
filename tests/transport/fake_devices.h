// The fake RDMA library in a test: its controls, and devices that use it.
#pragma once

#include <dlfcn.h>
#include <doctest/doctest.h>

#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "fake_verbs/fake_verbs.h"
#include "transport/verbs/verbs_devices.h"
#include "transport/verbs_pairs.h"

namespace lockstep {

inline const std::string kFakeLibrary = LOCKSTEP_BINARY_DIR "/libfakeverbs.so";

inline FakeVerbs& fake_verbs() {
  void* const library = ::dlopen(kFakeLibrary.c_str(), RTLD_NOW);
  REQUIRE_MESSAGE(library != nullptr, kFakeLibrary);
  return *reinterpret_cast<FakeVerbsControls>(::dlsym(library, "fake_verbs_controls"))();
}

// Sets the fake's mode for a test; afterwards nothing fails or drops any more.
class FakeScope {
 public:
  explicit FakeScope(FakeMode mode) : fake_(fake_verbs()) {
    reset();
    fake_.mode = static_cast<int>(mode);
    fake_.early_messages = fake_.overflows = fake_.unequal_buffers = 0;
    // A killed process left its objects without releasing them.
    fake_.contexts = fake_.domains = fake_.regions = 0;
    fake_.completion_queues = fake_.queue_pairs = 0;
  }
  ~FakeScope() { reset(); }
  FakeVerbs* operator->() { return &fake_; }

 private:
  void reset() {
    fake_.mode = static_cast<int>(FakeMode::kReliable);
    fake_.device_count = 1;
    fake_.is_port_down = 0;
    fake_.failing_call = 0;
    fake_.message_bytes_max = kFakeMessageBytes;
    fake_.drop_every = 0;
    fake_.is_alone = 0;
    fake_.held_port = fake_.mute_port = 0;
    fake_.passing_messages = fake_.holding_messages = 0;
    fake_.opens_left = std::numeric_limits<int>::max();
  }

  FakeVerbs& fake_;
};

inline std::unique_ptr<VerbsDevices> open_fake_devices(bool unreliable = false) {
  return std::move(VerbsDevices::open({.library = kFakeLibrary, .unreliable = unreliable}).value());
}

// As on a Mac, but senders wait for no acknowledgement, so that a port's ring can overflow.
inline std::unique_ptr<VerbsDevices> open_unfenced_devices() {
  VerbsDevices::Options options{.library = kFakeLibrary};
  options.unacknowledged_bytes_max = VerbsLimits::kNoLimit;
  return std::move(VerbsDevices::open(std::move(options)).value());
}

}  // namespace lockstep
