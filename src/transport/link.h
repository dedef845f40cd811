// Link: ordered frames to one peer, in memory that the device can reach. Every collective is
// written against this interface only; shm_link, tcp_link and verbs_link implement it. One thread
// uses a link. Only wait_readable() blocks; nothing allocates or locks. Every frame carries (epoch,
// sequence number, length): a frame of another epoch, out of order or with an impossible length
// makes the link kCorrupt, so that a lost or repeated frame can never become a wrong number.
#pragma once

#include <chrono>
#include <cstddef>
#include <span>

#include "base/result.h"

namespace lockstep {

class Link {
 public:
  virtual ~Link() = default;

  // The largest frame that acquire() can give.
  virtual size_t frame_bytes_max() const = 0;

  // A free outgoing frame of `bytes` bytes; empty while there is no room for it.
  virtual std::span<std::byte> acquire(size_t bytes) = 0;
  // Sends the frame acquired last.
  virtual void post() = 0;
  // Pushes posted frames on; true once all of them have left this process. Call it until true
  // before you stop polling.
  virtual bool flush() = 0;

  // The oldest frame that has arrived, read in place; empty if none has. Stays valid until
  // release().
  virtual std::span<const std::byte> peek() = 0;
  // Ends the use of the peeked frame and frees its room for the peer.
  virtual void release() = 0;

  // The one call that blocks: sleeps until a frame has arrived, the peer is gone or `at_most` has
  // passed. For a rank that idles between requests; it may return early for no reason.
  virtual void wait_readable(std::chrono::microseconds at_most) = 0;

  // kPeerLost once the peer is known to be gone, kCorrupt after a bad frame; says which rank and
  // why.
  virtual Status health() const = 0;
};

}  // namespace lockstep
