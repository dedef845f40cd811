// FdRelay: carries the bytes of a local stream descriptor (one end of a socket pair, a pipe) over a
// FrameConnection to the other end's FdRelay and back, so that a process there can be spoken to as
// if it were here. Bytes only: descriptors sent beside them are not carried. Neither side is read
// faster than the other takes it, so what waits is bounded. Loop's thread only.
#pragma once

#include <functional>
#include <memory>

#include "base/result.h"
#include "base/unique_fd.h"
#include "net/event_loop.h"
#include "net/frame_connection.h"

namespace lockstep {

class FdRelay {
 public:
  FdRelay() = default;
  // `on_end` comes once, when either side has ended or had ended before, and never from inside
  // start(): the descriptor is closed by then, and what had come from it has been sent.
  static FdRelay start(EventLoop& loop, UniqueFd fd, FrameConnection connection,
                       std::function<void(Error)> on_end);
  FdRelay(FdRelay&&) noexcept = default;
  FdRelay& operator=(FdRelay&& other) noexcept;
  ~FdRelay() { stop(); }

  void stop();

 private:
  struct Impl;
  explicit FdRelay(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<Impl> impl_;
};

}  // namespace lockstep
