// The implementation of FrameConnection: one TLS stream, its queue and its timers. Internal to
// net/. Lives on the loop's thread; kept alive by its pending operations and its handles.
#pragma once

#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "base/threads/guarded.h"
#include "net/frames/frame_connection.h"
#include "net/frames/tls_identity.h"

namespace lockstep {

class FrameConnection::Socket : public std::enable_shared_from_this<FrameConnection::Socket> {
 public:
  using Clock = std::chrono::steady_clock;
  using Ready = std::function<void(Result<FrameConnection>)>;

  Socket(const TlsIdentity& identity, boost::asio::ip::tcp::socket socket,
         const FrameLimits& limits);

  // On a connected socket: does the TLS handshake, then calls `ready` with the connection or the
  // error.
  void start(bool is_caller, std::chrono::milliseconds timeout, Ready ready);
  // `settled` is called once, when the connection is trusted or closed.
  void set_settled(std::function<void(bool is_trusted)> settled) { settled_ = std::move(settled); }

  bool is_open() const { return state_ == State::kOpen; }
  const PublicKey& peer_key() const { return peer_key_; }
  const std::string& peer_host() const { return peer_host_; }
  const Digest& session_secret() const { return session_secret_; }
  size_t unsent_bytes() const { return outgoing_.size() + sending_.size() - sent_bytes_; }

  void set_events(Events events);
  void trust();
  void set_trust_timeout(std::chrono::milliseconds from_now);
  void set_silence_max(std::chrono::milliseconds silence_max);
  void send(std::string_view frame);
  void pause();
  void resume();
  void close();
  void fail(Error error);
  void finish();

 private:
  enum class State { kHandshake, kOpen, kFinishing, kClosed };

  // An exception in `work`, ours or an event's, ends only this connection.
  template <class Work>
  void run(Work work) {
    if (const Status done = guarded(work); !done.ok()) on_exception(done.error());
  }
  void on_exception(const Error& error);
  void on_handshake(const boost::system::error_code& error);
  Status learn_peer();
  void read();
  void on_read(const boost::system::error_code& error, size_t count);
  void deliver();
  void write();
  void on_written(const boost::system::error_code& error, size_t count);
  void linger();
  void end();
  void settle();
  void arm();
  void on_timer();
  Clock::time_point next_deadline() const;

  TlsIdentity identity_;  // its settings outlive the stream
  FrameLimits limits_;
  boost::asio::ssl::stream<boost::asio::ip::tcp::socket> stream_;
  boost::asio::steady_timer timer_;
  State state_ = State::kHandshake;
  bool is_trusted_ = false;
  bool is_paused_ = false;
  bool is_reading_ = false;
  bool is_delivering_ = false;
  Ready ready_;
  std::function<void(bool is_trusted)> settled_;
  Events events_;

  PublicKey peer_key_{};
  std::string peer_host_;
  Digest session_secret_{};

  std::array<char, 32 << 10> chunk_;
  std::string incoming_;  // at most a frame and a chunk
  std::string outgoing_;
  std::string sending_;
  size_t sent_bytes_ = 0;  // of sending_

  Clock::time_point state_deadline_;  // of the handshake, of trust, of finishing
  Clock::time_point heard_at_;
  Clock::time_point moved_at_;  // when data last left, or the queue became non-empty
  Clock::time_point timer_due_;
};

}  // namespace lockstep
