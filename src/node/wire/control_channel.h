// The stream between a node and one worker: frames of a type and a payload over a Unix socket pair.
// FrameReader and FrameWriter never block; the node's supervising thread uses both through
// ControlChannel. Each object: one thread.
//
// A frame: u32 length (of type + payload, this machine's byte order: both ends are one program), u8
// type, payload. Descriptors travel with a frame (SCM_RIGHTS, unix(7)) and arrive with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/files/unique_fd.h"
#include "base/result.h"

namespace lockstep {

// The largest are a submitted prompt and a row of logits (1 MiB for 262,144 tokens).
inline constexpr size_t kControlFrameBytesMax = size_t{16} << 20;
// Bytes that a peer may leave unread before it counts as hung.
inline constexpr size_t kControlQueueBytesMax = size_t{64} << 20;
// With one frame, and among those not yet taken: a region for each peer.
inline constexpr size_t kControlFdsMax = 64;

struct ControlFrame {
  uint8_t type = 0;
  std::string payload;
};

class FrameReader {
 public:
  // Reads what has arrived, at most one socket buffer at a time. False if there is nothing;
  // kPeerLost at the end of the stream, kCorrupt with too many descriptors.
  Result<bool> fill(int fd);
  // The next complete frame; kCorrupt for an impossible length.
  Result<std::optional<ControlFrame>> next();
  // The descriptors that have arrived since the last call, in order, closed on exec.
  std::vector<UniqueFd> take_fds() { return std::exchange(fds_, {}); }

 private:
  std::string buffer_;
  size_t begin_ = 0;  // bytes of buffer_ that are used up
  std::vector<UniqueFd> fds_;
};

class FrameWriter {
 public:
  // kExhausted when the frame or the queue is too large.
  Status push(uint8_t type, std::string_view payload, std::vector<UniqueFd> fds = {});
  // Writes as much as the socket takes; kPeerLost when the other end is closed.
  Status flush(int fd);
  bool is_empty() const { return begin_ == buffer_.size(); }

 private:
  struct Passed {
    uint64_t position;  // in the stream: of the byte they are sent with
    std::vector<UniqueFd> fds;
  };

  std::string buffer_;
  size_t begin_ = 0;
  uint64_t pushed_ = 0;  // bytes of the stream so far
  std::deque<Passed> passed_;
};

class ControlChannel {
 public:
  explicit ControlChannel(UniqueFd fd) : fd_(std::move(fd)) {}

  int fd() const { return fd_.get(); }
  bool is_open() const { return fd_.is_open(); }
  void close() { fd_.reset(); }

  // `fds` are closed here after they have been sent.
  Status send(uint8_t type, std::string_view payload, std::vector<UniqueFd> fds = {});
  Status flush() { return writer_.flush(fd_.get()); }
  bool has_outgoing() const { return !writer_.is_empty(); }
  Result<bool> fill() { return reader_.fill(fd_.get()); }
  Result<std::optional<ControlFrame>> next() { return reader_.next(); }
  std::vector<UniqueFd> take_fds() { return reader_.take_fds(); }
  // Drops all input, for a peer whose messages no longer matter. next() must not be called
  // afterwards.
  Status discard();

 private:
  UniqueFd fd_;
  FrameReader reader_;
  FrameWriter writer_;
};

// Both ends non-blocking and closed on exec.
Result<std::pair<UniqueFd, UniqueFd>> control_socket_pair();

}  // namespace lockstep
