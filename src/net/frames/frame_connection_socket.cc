#include "net/frames/frame_connection_socket.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/error.hpp>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "net/frames/tls_identity_impl.h"

namespace lockstep {
namespace {

using boost::system::error_code;
using namespace std::chrono_literals;

constexpr size_t kLengthBytes = 4;
constexpr std::chrono::milliseconds kFinishTimeout{2'000};
constexpr std::chrono::milliseconds kOwnStall{500};  // a timer this late: this process did not run

uint32_t read_length(const char* bytes) {
  uint32_t length = 0;
  for (int i = 3; i >= 0; --i) length = length << 8 | static_cast<unsigned char>(bytes[i]);
  return length;
}

void append_length(std::string& out, size_t length) {
  for (int i = 0; i < 4; ++i) out.push_back(static_cast<char>(length >> (8 * i)));
}

Error socket_error(const error_code& error) {
  if (error == boost::asio::error::eof || error == boost::asio::ssl::error::stream_truncated ||
      error == boost::asio::error::connection_reset) {
    return {ErrorCode::kPeerLost, "the other end closed the connection"};
  }
  return {ErrorCode::kPeerLost, "the connection broke: " + error.message()};
}

std::string milliseconds_text(std::chrono::milliseconds time) {
  return std::to_string(time.count()) + " ms";
}

}  // namespace

FrameConnection::Socket::Socket(const TlsIdentity& identity, boost::asio::ip::tcp::socket socket,
                                const FrameLimits& limits)
    : identity_(identity),
      limits_(limits),
      stream_(std::move(socket), identity.impl().context),
      timer_(stream_.get_executor()) {}

void FrameConnection::Socket::start(bool is_caller, std::chrono::milliseconds timeout,
                                    Ready ready) {
  ready_ = std::move(ready);
  error_code error;
  const auto endpoint = stream_.lowest_layer().remote_endpoint(error);
  if (!error) peer_host_ = endpoint.address().to_string();
  stream_.lowest_layer().set_option(boost::asio::ip::tcp::no_delay(true), error);
  state_deadline_ = Clock::now() + timeout;
  arm();
  using Stream = boost::asio::ssl::stream_base;
  stream_.async_handshake(is_caller ? Stream::client : Stream::server,
                          [self = shared_from_this()](const error_code& result) {
                            self->run([&] { self->on_handshake(result); });
                          });
}

void FrameConnection::Socket::on_handshake(const error_code& error) {
  if (state_ != State::kHandshake) return;
  if (error) {
    return fail({ErrorCode::kPeerLost, "no TLS session was agreed on: " + error.message()});
  }
  if (auto learned = learn_peer(); !learned.ok()) return fail(std::move(learned.error()));
  state_ = State::kOpen;
  heard_at_ = moved_at_ = Clock::now();
  set_trust_timeout(limits_.trust_timeout);
  if (const auto ready = std::exchange(ready_, nullptr)) ready(FrameConnection(shared_from_this()));
}

Status FrameConnection::Socket::learn_peer() {
  peer_key_ = TRY(lockstep::peer_key(stream_.native_handle()));
  session_secret_ = TRY(lockstep::session_secret(stream_.native_handle()));
  return Ok{};
}

void FrameConnection::Socket::set_events(Events events) {
  if (state_ != State::kOpen) return;  // they would never be released, and often hold this socket
  events_ = std::move(events);
  deliver();
}

void FrameConnection::Socket::trust() {
  if (state_ != State::kOpen) return;
  is_trusted_ = true;
  heard_at_ = Clock::now();
  arm();
  settle();
}

void FrameConnection::Socket::set_trust_timeout(std::chrono::milliseconds from_now) {
  state_deadline_ = Clock::now() + from_now;
  arm();
}

void FrameConnection::Socket::set_silence_max(std::chrono::milliseconds silence_max) {
  limits_.silence_max = silence_max;
  heard_at_ = Clock::now();
  arm();
}

void FrameConnection::Socket::on_exception(const Error& error) {
  log_error("net: a connection to another node threw an exception: {}", error.message);
  is_delivering_ = false;
  fail({ErrorCode::kExhausted, "out of memory for data that arrived on this connection"});
}

void FrameConnection::Socket::read() {
  if (is_reading_ || is_paused_ || state_ == State::kClosed) return;
  is_reading_ = true;
  stream_.async_read_some(boost::asio::buffer(chunk_),
                          [self = shared_from_this()](const error_code& error, size_t count) {
                            self->run([&] { self->on_read(error, count); });
                          });
}

void FrameConnection::Socket::on_read(const error_code& error, size_t count) {
  is_reading_ = false;
  if (state_ == State::kClosed) return;
  if (state_ == State::kFinishing) return error ? end() : read();
  if (error) return fail(socket_error(error));
  heard_at_ = Clock::now();
  incoming_.append(chunk_.data(), count);
  deliver();
}

// Delivers the complete frames, then continues reading. A callback may do anything, even close.
void FrameConnection::Socket::deliver() {
  if (is_delivering_ || !events_.on_frame) return;
  is_delivering_ = true;
  size_t position = 0;
  while (state_ == State::kOpen && !is_paused_ && events_.on_frame &&
         incoming_.size() - position >= kLengthBytes) {
    const size_t length = read_length(incoming_.data() + position);
    const size_t length_max =
        is_trusted_ ? limits_.frame_bytes_max : limits_.stranger_frame_bytes_max;
    if (length > length_max) {
      is_delivering_ = false;
      return fail({ErrorCode::kCorrupt, "a frame of " + std::to_string(length) +
                                            " bytes arrived, at most " +
                                            std::to_string(length_max) + " are allowed"});
    }
    if (incoming_.size() - position - kLengthBytes < length) break;
    std::string frame = incoming_.substr(position + kLengthBytes, length);
    position += kLengthBytes + length;
    const auto on_frame = events_.on_frame;  // it may replace the events
    on_frame(std::move(frame));
  }
  is_delivering_ = false;
  if (state_ != State::kOpen) return;
  incoming_.erase(0, position);
  read();
}

void FrameConnection::Socket::send(std::string_view frame) {
  LOCKSTEP_CHECK(frame.size() <= limits_.frame_bytes_max);
  if (state_ != State::kOpen) return;
  if (unsent_bytes() + kLengthBytes + frame.size() > limits_.unsent_bytes_max) {
    // Not from inside the caller's send(), which may be in the middle of a change.
    boost::asio::post(stream_.get_executor(), [self = shared_from_this()] {
      self->fail({ErrorCode::kPeerLost, "the other end reads too slowly"});
    });
    return;
  }
  if (unsent_bytes() == 0) moved_at_ = Clock::now();
  append_length(outgoing_, frame.size());
  outgoing_.append(frame);
  write();
}

void FrameConnection::Socket::write() {
  if (!sending_.empty() || outgoing_.empty() || state_ == State::kClosed) return;
  sending_.swap(outgoing_);
  sent_bytes_ = 0;
  arm();
  on_written({}, 0);
}

void FrameConnection::Socket::on_written(const error_code& error, size_t count) {
  if (state_ == State::kClosed) return;
  if (error) return fail(socket_error(error));
  sent_bytes_ += count;
  if (count > 0) moved_at_ = Clock::now();
  if (sent_bytes_ < sending_.size()) {
    stream_.async_write_some(
        boost::asio::buffer(sending_.data() + sent_bytes_, sending_.size() - sent_bytes_),
        [self = shared_from_this()](const error_code& result, size_t written) {
          self->run([&] { self->on_written(result, written); });
        });
    return;
  }
  sending_.clear();
  sent_bytes_ = 0;
  if (!outgoing_.empty()) return write();
  if (state_ == State::kFinishing) return linger();
  if (const auto on_drained = events_.on_drained) on_drained();
}

void FrameConnection::Socket::pause() {
  is_paused_ = true;
}

void FrameConnection::Socket::resume() {
  if (!std::exchange(is_paused_, false)) return;
  heard_at_ = Clock::now();
  arm();
  if (state_ == State::kOpen) deliver();
}

void FrameConnection::Socket::close() {
  if (state_ != State::kClosed) end();
}

void FrameConnection::Socket::finish() {
  if (state_ == State::kHandshake) return close();
  if (state_ != State::kOpen) return;
  state_ = State::kFinishing;
  events_ = {};
  settle();
  incoming_.clear();
  is_paused_ = false;
  state_deadline_ = Clock::now() + kFinishTimeout;
  arm();
  read();
  if (unsent_bytes() == 0) linger();
}

// The kernel has all data. Reads until the peer closes: closing with unread input would reset the
// connection, and the last data might be lost.
void FrameConnection::Socket::linger() {
  error_code ignored;
  stream_.lowest_layer().shutdown(boost::asio::ip::tcp::socket::shutdown_send, ignored);
}

void FrameConnection::Socket::fail(Error error) {
  if (state_ == State::kClosed) return;
  const auto keep = shared_from_this();
  const auto ready = std::exchange(ready_, nullptr);
  const auto on_close = std::exchange(events_.on_close, nullptr);
  end();
  if (ready) {
    ready(std::move(error));
  } else if (on_close) {
    on_close(std::move(error));
  }
}

void FrameConnection::Socket::end() {
  state_ = State::kClosed;
  error_code ignored;
  stream_.lowest_layer().close(ignored);
  timer_.cancel();
  ready_ = nullptr;
  incoming_.clear();
  outgoing_.clear();
  settle();
  // The events may hold the only handle of an object that is running right now.
  boost::asio::post(stream_.get_executor(), [events = std::exchange(events_, {})] {});
}

void FrameConnection::Socket::settle() {
  if (const auto settled = std::exchange(settled_, nullptr)) settled(is_trusted_);
}

FrameConnection::Socket::Clock::time_point FrameConnection::Socket::next_deadline() const {
  Clock::time_point next = Clock::time_point::max();
  const bool has_state_deadline = state_ != State::kOpen || !is_trusted_;
  if (has_state_deadline) next = std::min(next, state_deadline_);
  if (!has_state_deadline && limits_.silence_max > 0ms && !is_paused_) {
    next = std::min(next, heard_at_ + limits_.silence_max);
  }
  if (state_ == State::kOpen && unsent_bytes() > 0) {
    next = std::min(next, moved_at_ + limits_.stall_max);
  }
  return next;
}

// The timer is not reset for every frame: when it fires, on_timer() checks what has happened since.
void FrameConnection::Socket::arm() {
  if (state_ == State::kClosed) return;
  const Clock::time_point next = next_deadline();
  if (next == Clock::time_point::max()) return;
  if (timer_due_ != Clock::time_point() && timer_due_ <= next) return;
  timer_due_ = next;
  timer_.expires_at(next);
  timer_.async_wait([self = shared_from_this()](const error_code& error) {
    if (!error) self->run([&] { self->on_timer(); });
  });
}

void FrameConnection::Socket::on_timer() {
  const Clock::time_point now = Clock::now();
  const auto late = now - std::exchange(timer_due_, Clock::time_point());
  if (state_ == State::kClosed) return;
  if (late > kOwnStall) {
    state_deadline_ += late;
    heard_at_ += late;
    moved_at_ += late;
  }
  if (now < next_deadline()) return arm();
  if (state_ == State::kFinishing) return end();
  if (state_ == State::kHandshake || !is_trusted_) {
    return fail({ErrorCode::kTimeout, "the other end did not introduce itself in time"});
  }
  if (unsent_bytes() > 0 && now >= moved_at_ + limits_.stall_max) {
    return fail({ErrorCode::kTimeout,
                 "the other end read nothing for " + milliseconds_text(limits_.stall_max)});
  }
  fail({ErrorCode::kTimeout, "nothing was heard for " + milliseconds_text(limits_.silence_max)});
}

}  // namespace lockstep
