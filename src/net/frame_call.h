// FrameCall: one attempt to reach an address and to have a connection of frames with whoever is
// there. Loop's thread only.
#pragma once

#include <functional>
#include <memory>

#include "base/result.h"
#include "net/event_loop.h"
#include "net/frame_connection.h"
#include "net/tls_identity.h"

namespace lockstep {

// A handle; destroying it gives the call up, and then `ready` never runs.
class FrameCall {
 public:
  using Ready = std::function<void(Result<FrameConnection>)>;

  FrameCall() = default;
  // Calls `ready` once, within limits.connect_timeout, and never from inside start(). A name that
  // stands for several addresses is tried at one after the other; one that stays silent uses up
  // the time of those behind it.
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
