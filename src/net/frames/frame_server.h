// FrameServer: accepts FrameConnections. Each has a completed TLS session when it is handed on, and
// is a stranger until the receiver calls trust(). The number of strangers (`strangers_max`), their
// time, and the calls per address are limited; others are closed at once and counted. Loop's thread
// only, except where noted.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "net/caller_gate.h"
#include "net/event_loop.h"
#include "net/frames/frame_connection.h"
#include "net/frames/tls_identity.h"

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
  // Stops listening and closes strangers; trusted connections stay open.
  ~FrameServer();

  uint16_t port() const;
  Counts counts() const;

 private:
  struct Impl;
  explicit FrameServer(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<Impl> impl_;
};

}  // namespace lockstep
