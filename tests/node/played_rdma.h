// The RDMA library without devices (tests/fake_verbs) for workers that are processes: they share
// one wire, which this process controls.
#pragma once

#include <cstdint>

#include "base/unique_fd.h"
#include "fake_verbs/fake_verbs.h"

namespace lockstep {

class PlayedRdma {
 public:
  // Makes the wire and has processes that are started from now on use it. False where this build
  // has no such library.
  bool play();
  bool is_played() const { return controls_ != nullptr; }

  // Every message is lost without a word, as on an unreliable queue pair.
  void lose_messages() { set_message_bytes_max(0); }
  void deliver_messages() { set_message_bytes_max(kFakeMessageBytes); }
  // All so far.
  uint64_t message_count() const { return controls_ == nullptr ? 0 : controls_->messages.load(); }
  // Of one process; null if it has never had any.
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
