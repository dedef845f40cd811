// PeerWait: the waiting inside one exchange of a group. Adds to base/wait.h the health of the links
// that are waited for, the rank in the message of an error, and the note in Progress. For
// collective/ only.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/wait.h"
#include "collective/group_options.h"

namespace lockstep {

using PeerSet = uint64_t;  // bit r: rank r
constexpr PeerSet peer_bit(int peer) {
  return PeerSet{1} << peer;
}

class PeerWait {
 public:
  explicit PeerWait(const GroupOptions& options);
  ~PeerWait();
  PeerWait(const PeerWait&) = delete;
  PeerWait& operator=(const PeerWait&) = delete;

  // One round of waiting for a message of `peer`: "rank 1: no message within 2000 ms".
  Status pause(int peer) { return pause(peer_bit(peer), 0); }
  // For messages of some and for room on the way to others. One whose link is not healthy ends the
  // wait; an error at the deadline names the first of them.
  Status pause(PeerSet unheard, PeerSet unsent);
  // Something moved: the time-out is one of silence, not of the exchange.
  void restart() { wait_.restart(); }

 private:
  Status look(PeerSet peers, int first);

  const GroupOptions& options_;
  Wait wait_;
  uint64_t rounds_ = 0;
  bool is_reported_ = false;
};

}  // namespace lockstep
