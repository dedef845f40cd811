// The RDMA library without devices (tests/fake_verbs) for worker processes: they share one wire,
// which this process controls.
#pragma once

#include <cstdint>

#include "base/files/unique_fd.h"
#include "fake_verbs/fake_verbs.h"

namespace lockstep {

class PlayedRdma {
 public:
  // Creates the wire and makes processes started from now on use it. False if this build has no
  // such library.
  bool play();
  bool is_played() const { return controls_ != nullptr; }

  // Loses every message silently, as on an unreliable queue pair.
  void lose_messages() { set_message_bytes_max(0); }
  void deliver_messages() { set_message_bytes_max(kFakeMessageBytes); }
  // Messages sent so far.
  uint64_t message_count() const { return controls_ == nullptr ? 0 : controls_->messages.load(); }
  // The objects of one process; null if it has never had any.
  const FakeObjects* objects_of(int64_t pid) const;

 private:
  void set_message_bytes_max(uint32_t bytes) {
    if (controls_ != nullptr) controls_->message_bytes_max = bytes;
  }

  UniqueFd wire_;
  FakeVerbs* controls_ = nullptr;
  FakeVerbsObjectsOf objects_of_ = nullptr;
};

}  // namespace lockstep
