// The stream between a node and one worker: frames of a type and a payload over a Unix socket pair.
// FrameReader and FrameWriter never block; the node's supervising thread uses both through
// ControlChannel. Each object: one thread.
//
// A frame: u32 length (of type + payload, this machine's byte order: both ends are one program), u8
// type, payload.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "base/unique_fd.h"

namespace lockstep {

// The largest are a submitted prompt and a row of logits (1 MiB for 262,144 tokens).
inline constexpr size_t kControlFrameBytesMax = size_t{16} << 20;
// What a peer may leave unread before it counts as hung.
inline constexpr size_t kControlQueueBytesMax = size_t{64} << 20;

struct ControlFrame {
  uint8_t type = 0;
  std::string payload;
};

class FrameReader {
 public:
  // Takes what has arrived, at most one socket buffer at a time. False if nothing is there;
  // kPeerLost at the end of the stream.
  Result<bool> fill(int fd);
  // The next complete frame; kCorrupt for a length that cannot be.
  Result<std::optional<ControlFrame>> next();

 private:
  std::string buffer_;
  size_t begin_ = 0;  // bytes of buffer_ that are used up
};

class FrameWriter {
 public:
  // kExhausted when the frame or the queue is too large.
  Status push(uint8_t type, std::string_view payload);
  // Writes what the socket takes; kPeerLost when nobody can read it any more.
  Status flush(int fd);
  bool is_empty() const { return begin_ == buffer_.size(); }

 private:
  std::string buffer_;
  size_t begin_ = 0;
};

class ControlChannel {
 public:
  explicit ControlChannel(UniqueFd fd) : fd_(std::move(fd)) {}

  int fd() const { return fd_.get(); }
  bool is_open() const { return fd_.is_open(); }
  void close() { fd_.reset(); }

  Status send(uint8_t type, std::string_view payload);
  Status flush() { return writer_.flush(fd_.get()); }
  bool has_outgoing() const { return !writer_.is_empty(); }
  Result<bool> fill() { return reader_.fill(fd_.get()); }
  Result<std::optional<ControlFrame>> next() { return reader_.next(); }
  // Drops what has arrived, for a peer whose words no longer matter. next() makes no sense
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
