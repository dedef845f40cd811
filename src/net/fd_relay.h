// FdRelay: carries the bytes of a local stream descriptor (one end of a socket pair, a pipe) over a
// FrameConnection to the other end's FdRelay and back, so that a process there can be spoken to as
// if it were here. Bytes only: descriptors sent beside them are not carried. Neither side is read
// faster than the other takes it, so what waits is bounded. Loop's thread only.
//
// A frame has bytes. An empty one says that no more come, and that the next one says why.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"
#include "net/event_loop.h"
#include "net/frame_connection.h"

namespace lockstep {

class FdRelay {
 public:
  FdRelay() = default;
  // `on_end` comes once, when either side has ended or had ended before, and never from inside
  // start(): the descriptor is closed by then, and what had come from it has been sent. kCancelled:
  // the other end has said why, in the message. kPeerLost: all else.
  static FdRelay start(EventLoop& loop, UniqueFd fd, FrameConnection connection,
                       std::function<void(Error)> on_end);
  // For a side that will know why its descriptor ended: where that comes first, the connection is
  // left open for say_why().
  static FdRelay start_with_reason(EventLoop& loop, UniqueFd fd, FrameConnection connection,
                                   std::function<void(Error)> on_end);
  // Ends the connection with these words, once the relay has ended.
  static void say_why(FrameConnection& connection, std::string_view words);
  FdRelay(FdRelay&&) noexcept = default;
  FdRelay& operator=(FdRelay&& other) noexcept;
  ~FdRelay() { stop(); }

  void stop();

 private:
  struct Impl;
  static FdRelay begin(std::shared_ptr<Impl> impl);
  explicit FdRelay(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<Impl> impl_;
};

}  // namespace lockstep
