// FrameServer: accepts connections of frames. Each caller has a TLS session when it is handed on,
// and is a stranger until the receiver calls trust(). Strangers are few (`strangers_max`), have
// little time, and one address may call only so often; the rest are closed at once and counted.
// Loop's thread only, except where it says otherwise.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "net/caller_gate.h"
#include "net/event_loop.h"
#include "net/frame_connection.h"
#include "net/tls_identity.h"

namespace lockstep {

class FrameServer {
 public:
  struct Options {
    std::string host = "*";  // or an address, or "localhost"
    uint16_t port = 0;       // 0 picks one
    size_t strangers_max = 64;
    CallerGate::Limits calls = {};
    FrameLimits limits = {};
  };
  struct Counts {
    uint64_t refused = 0;  // too many strangers, or too many calls from one address
    uint64_t failed = 0;   // no TLS session, no certificate
  };
  using OnConnection = std::function<void(FrameConnection)>;

  static Result<std::unique_ptr<FrameServer>> listen(EventLoop& loop, const TlsIdentity& identity,
                                                     const Options& options,
                                                     OnConnection on_connection);
  // Listens no more, and closes those that are strangers still; the others live on.
  ~FrameServer();

  uint16_t port() const;
  Counts counts() const;

 private:
  struct Impl;
  explicit FrameServer(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<Impl> impl_;
};

}  // namespace lockstep
