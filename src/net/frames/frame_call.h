// FrameCall: one attempt to open a FrameConnection to an address. Loop's thread only.
#pragma once

#include <functional>
#include <memory>

#include "base/result.h"
#include "net/event_loop.h"
#include "net/frames/frame_connection.h"
#include "net/frames/tls_identity.h"

namespace lockstep {

// A handle; destroying it cancels the call, and then `ready` never runs.
class FrameCall {
 public:
  using Ready = std::function<void(Result<FrameConnection>)>;

  FrameCall() = default;
  // Calls `ready` once, within limits.connect_timeout, and never from inside start(). The addresses
  // of a name are tried in order; a silent one uses up the time of those after it.
  static FrameCall start(EventLoop& loop, const TlsIdentity& identity, const NetAddress& address,
                         const FrameLimits& limits, Ready ready);
  FrameCall(FrameCall&&) noexcept = default;
  FrameCall& operator=(FrameCall&& other) noexcept;
  ~FrameCall() { cancel(); }

  void cancel();

 private:
  struct Impl;
  explicit FrameCall(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<Impl> impl_;
};

}  // namespace lockstep
