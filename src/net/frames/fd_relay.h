// FdRelay: relays the bytes of a local stream descriptor (one end of a socket pair, a pipe) over a
// FrameConnection to the peer's FdRelay and back, so that a remote process can be used like a local
// one. Passes only bytes, no descriptors. Each side is read only as fast as the other accepts data,
// so buffers are bounded. Loop's thread only.
//
// A frame holds bytes. An empty one ends them; the next frame then gives the reason.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "base/files/unique_fd.h"
#include "base/result.h"
#include "net/event_loop.h"
#include "net/frames/frame_connection.h"

namespace lockstep {

class FdRelay {
 public:
  FdRelay() = default;
  // Calls `on_end` once, when either side has ended or had already ended, and never from inside
  // start(): by then the descriptor is closed, and its bytes have been sent. kCancelled: the other
  // end gave a reason, in the message. kPeerLost: any other end.
  static FdRelay start(EventLoop& loop, UniqueFd fd, FrameConnection connection,
                       std::function<void(Error)> on_end);
  // For the side that knows why its descriptor ended: if the descriptor ends first, the connection
  // stays open for say_why().
  static FdRelay start_with_reason(EventLoop& loop, UniqueFd fd, FrameConnection connection,
                                   std::function<void(Error)> on_end);
  // Sends this reason and ends the connection, after the relay has ended.
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
