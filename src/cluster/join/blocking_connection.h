// BlockingConnection: frames with one peer for a thread that may wait: a command's calls, one after
// another, instead of callbacks. Any thread but the loop's; one at a time.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "base/crypto/key_pair.h"
#include "base/crypto/secrets.h"
#include "base/result.h"
#include "net/event_loop.h"
#include "net/frames/frame_connection.h"
#include "net/frames/tls_identity.h"

namespace lockstep {

class BlockingConnection {
 public:
  static Result<BlockingConnection> call(EventLoop& loop, const TlsIdentity& identity,
                                         const NetAddress& address, const FrameLimits& limits);
  BlockingConnection(BlockingConnection&&) noexcept = default;
  ~BlockingConnection();

  PublicKey peer_key() const;
  Digest session_secret() const;
  void send(std::string frame);
  // The next frame; kTimeout at the deadline, kCancelled once the flag is set, or why it closed.
  Result<std::string> receive(std::chrono::milliseconds timeout,
                              const std::atomic<bool>* cancelled = nullptr);

 private:
  struct State;
  explicit BlockingConnection(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

}  // namespace lockstep
