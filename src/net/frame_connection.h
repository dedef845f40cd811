// FrameConnection: frames of bytes in both directions over TLS 1.3 with one peer that has shown the
// key of its certificate. Used for all traffic between nodes except a group's data (cluster/). On
// the wire a frame is its length (4 bytes, little-endian) and its bytes.
//
// A handle, cheap to copy; everything here belongs to the thread of the connection's EventLoop. A
// connection is a stranger's until trust(): its frames must be short and it is closed when
// `trust_timeout` has passed. Afterwards it is closed when nothing came for `silence_max`, when
// nothing that was sent could leave for `stall_max`, or when more than `unsent_bytes_max` wait to
// be sent: a peer that reads too slowly is dropped rather than waited for. Time in which this
// process itself did not run does not count. That a connection has ended says nothing about what
// the peer has read; what needs an end says so in a frame.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/key_pair.h"
#include "base/result.h"
#include "base/secrets.h"

namespace lockstep {

struct FrameLimits {
  size_t frame_bytes_max = 1 << 20;
  size_t stranger_frame_bytes_max = 4 << 10;
  size_t unsent_bytes_max = 8 << 20;
  std::chrono::milliseconds connect_timeout{3'000};    // name, TCP and TLS of a call together
  std::chrono::milliseconds handshake_timeout{3'000};  // TLS of the end that was called
  std::chrono::milliseconds trust_timeout{5'000};      // from then on
  std::chrono::milliseconds silence_max{3'000};        // 0: may be silent for ever
  std::chrono::milliseconds stall_max{10'000};
};

// Where a node is reached. `host` is a name or a numeric address; a link-local IPv6 one has its
// scope ("fe80::1%eth0").
struct NetAddress {
  std::string host;
  uint16_t port = 0;

  std::string text() const;  // "10.0.0.2:8601", "[fe80::1%eth0]:8601"
  auto operator<=>(const NetAddress&) const = default;
};

// "host", "host:port", "[v6]", "[v6]:port" or a bare IPv6 address; kInvalidArgument names the text.
Result<NetAddress> parse_net_address(std::string_view text, uint16_t default_port);

class FrameConnection {
 public:
  struct Events {
    std::function<void(std::string)> on_frame;
    std::function<void(Error)> on_close;  // once, unless close() was called here
    std::function<void()> on_drained;     // nothing waits to be sent any more
  };

  FrameConnection() = default;  // none
  class Socket;                 // for net/ alone
  explicit FrameConnection(std::shared_ptr<Socket> socket) : socket_(std::move(socket)) {}

  bool is_open() const;
  // Who is at the other end, by key, and by address (without a port: that of a caller means
  // nothing).
  const PublicKey& peer_key() const;
  const std::string& peer_host() const;
  // A secret of this TLS session that both ends have and nobody else; proofs are made over it.
  const Digest& session_secret() const;

  // Frames are held back until there are events. Setting them again replaces them. On a connection
  // that has closed this does nothing: on_close will not come, ask is_open().
  void set_events(Events events);
  void trust();
  void set_trust_timeout(std::chrono::milliseconds from_now);
  void set_silence_max(std::chrono::milliseconds silence_max);

  // Does nothing on a connection that has closed. The frame must keep to frame_bytes_max.
  void send(std::string_view frame);
  size_t unsent_bytes() const;
  // While paused, frames stay with the sender, whose queue they fill; silence does not count.
  void pause();
  void resume();

  void close();
  // As if it had broken for this reason: on_close is called.
  void fail(Error error);
  // Sends what waits, within 2 s, and closes. Nothing more is received.
  void finish();

 private:
  std::shared_ptr<Socket> socket_;
};

}  // namespace lockstep
