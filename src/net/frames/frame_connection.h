// FrameConnection: frames of bytes in both directions over TLS 1.3 with one peer that has proved
// the key of its certificate. Used for all traffic between nodes except a group's data (cluster/).
// On the wire a frame is its length (4 bytes, little-endian) and its bytes.
//
// A handle, cheap to copy; everything here belongs to the thread of the connection's EventLoop. A
// connection is a stranger's until trust(): its frames must be short and it is closed after
// `trust_timeout`. Afterwards it is closed when nothing arrived for `silence_max`, when queued data
// made no progress for `stall_max`, or when more than `unsent_bytes_max` are queued: a peer that
// reads too slowly is dropped rather than waited for. Time in which this process itself did not run
// does not count. The end of a connection does not tell what the peer has read; protocols that need
// an end mark it in a frame.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/crypto/key_pair.h"
#include "base/crypto/secrets.h"
#include "base/result.h"

namespace lockstep {

struct FrameLimits {
  size_t frame_bytes_max = 1 << 20;
  size_t stranger_frame_bytes_max = 4 << 10;
  size_t unsent_bytes_max = 8 << 20;
  std::chrono::milliseconds connect_timeout{3'000};    // name, TCP and TLS of a call in total
  std::chrono::milliseconds handshake_timeout{3'000};  // TLS on the accepting side
  std::chrono::milliseconds trust_timeout{5'000};      // after TLS
  std::chrono::milliseconds silence_max{3'000};        // 0: no limit
  std::chrono::milliseconds stall_max{10'000};
};

// The address of a node. `host` is a name or a numeric address; a link-local IPv6 one has its scope
// ("fe80::1%eth0").
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
    std::function<void(Error)> on_close;  // once, unless this side called close()
    std::function<void()> on_drained;     // nothing is queued any more
  };

  FrameConnection() = default;  // none
  class Socket;                 // internal to net/
  explicit FrameConnection(std::shared_ptr<Socket> socket) : socket_(std::move(socket)) {}

  bool is_open() const;
  // The peer's key, and its address (without a port: a caller's port means nothing).
  const PublicKey& peer_key() const;
  const std::string& peer_host() const;
  // A secret of this TLS session that only its two ends have; proofs are made over it.
  const Digest& session_secret() const;

  // Frames are held back until events are set. Setting them again replaces them. Does nothing on a
  // closed connection: on_close will not be called, so check is_open().
  void set_events(Events events);
  void trust();
  void set_trust_timeout(std::chrono::milliseconds from_now);
  void set_silence_max(std::chrono::milliseconds silence_max);

  // Does nothing on a closed connection. The frame must not exceed frame_bytes_max.
  void send(std::string_view frame);
  size_t unsent_bytes() const;
  // While paused, frames fill the sender's queue; silence does not count.
  void pause();
  void resume();

  void close();
  // Ends the connection as if it had broken for this reason: on_close is called.
  void fail(Error error);
  // Sends the queue, within 2 s, and closes. Receives nothing more.
  void finish();

 private:
  std::shared_ptr<Socket> socket_;
};

}  // namespace lockstep
