// PeerWait: the waiting inside one exchange of a group. Adds to base/wait.h the health of the link
// that is waited for, the rank in the message of an error, and the note in Progress. For
// collective/ only.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/wait.h"
#include "collective/group.h"
#include "transport/frame.h"

namespace lockstep {

// Long messages travel in frames of this size, so that adding overlaps with sending; every link
// must take them.
inline constexpr size_t kPieceBytes = size_t{256} * 1024;

class PeerWait {
 public:
  explicit PeerWait(const Group::Options& options);
  ~PeerWait();
  PeerWait(const PeerWait&) = delete;
  PeerWait& operator=(const PeerWait&) = delete;

  // One round of waiting for `peer`: "rank 1: no <what> within 2000 ms".
  Status pause(int peer, std::string_view what = "message");
  // Something moved: the time-out is one of silence, not of the exchange.
  void restart() { wait_.restart(); }

 private:
  const Group::Options& options_;
  Wait wait_;
  uint64_t rounds_ = 0;
  bool is_reported_ = false;
};

}  // namespace lockstep
