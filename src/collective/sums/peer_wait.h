// PeerWait: the waiting inside one exchange of a group. Adds to base/threads/wait.h the health of
// the links waited for, the rank in error messages, and the note in Progress. For collective/ only.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/threads/wait.h"
#include "collective/plan/group_options.h"

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

  // One round of waiting for a message from `peer`: "rank 1: no message within 2000 ms".
  Status pause(int peer) { return pause(peer_bit(peer), 0); }
  // For messages from some peers and for room on the links to others. An unhealthy link ends the
  // wait; an error at the deadline names the first peer.
  Status pause(PeerSet unheard, PeerSet unsent);
  // Something moved: the timeout limits silence, not the whole exchange.
  void restart() { wait_.restart(); }

 private:
  Status look(PeerSet peers, int first);

  const GroupOptions& options_;
  Wait wait_;
  uint64_t rounds_ = 0;
  bool is_reported_ = false;
};

}  // namespace lockstep
