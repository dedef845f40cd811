// Whole messages over a Link, in pieces that fit its frames: how pipeline stages pass on work.
// Nothing here blocks: poll() moves what can move and is called between other work. The first frame
// begins with the message's length as a little-endian u64; the others are plain bytes. Memory grows
// to the longest message and stays. One thread uses a stream; a link may carry one in each
// direction, and nothing else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "transport/link.h"

namespace lockstep {

// Messages that grow by a few bytes from step to step find room: buffers are a multiple of this.
inline constexpr size_t kMessageRoom = 4096;
inline void reserve_message(std::vector<std::byte>& message, size_t bytes) {
  message.reserve((bytes + kMessageRoom - 1) / kMessageRoom * kMessageRoom);
}

class MessageSender {
 public:
  // `link` must outlive the sender.
  explicit MessageSender(Link& link);

  // True once the last message has left this process.
  bool is_idle() const { return is_idle_; }
  // Takes `message` (not empty) and leaves an earlier message's buffer in its place. Only while
  // idle.
  void send(std::vector<std::byte>& message);
  // Gives the link as much as it accepts; true if anything moved.
  bool poll();

 private:
  Link& link_;
  size_t piece_bytes_;
  std::vector<std::byte> message_;
  std::span<const std::byte> unsent_;
  bool is_first_frame_ = true;
  bool is_idle_ = true;
};

class MessageReceiver {
 public:
  // Holds up to `messages_max` whole messages of at most `bytes_max` each; further ones wait in the
  // link. `peer` is the rank at the other end, for errors.
  MessageReceiver(Link& link, int peer, size_t messages_max, size_t bytes_max);

  bool has_message() const { return whole_ > 0; }
  // The oldest whole message; the buffer of `message` is reused for a later one.
  void take(std::vector<std::byte>& message);
  // Takes what has arrived from the link; true if anything moved. kCorrupt for an impossible
  // length.
  Result<bool> poll();

 private:
  Result<bool> take_frame(std::span<const std::byte> frame);

  Link& link_;
  int peer_;
  size_t bytes_max_;
  std::vector<std::vector<std::byte>> messages_;  // a ring: whole ones from first_ on
  size_t first_ = 0;
  size_t whole_ = 0;
  size_t received_ = 0;  // of the incoming message
  bool is_coming_ = false;
};

}  // namespace lockstep
