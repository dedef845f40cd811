#include "net/frames/frame_connection.h"

#include <algorithm>
#include <charconv>

#include "base/check.h"
#include "net/frames/frame_connection_socket.h"

namespace lockstep {

std::string NetAddress::text() const {
  const bool is_v6 = host.find(':') != std::string::npos;
  return (is_v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

Result<NetAddress> parse_net_address(std::string_view text, uint16_t default_port) {
  const Error bad{
      ErrorCode::kInvalidArgument,
      "'" + std::string(text) + "' is not an address: write HOST, HOST:PORT or [IPV6]:PORT"};
  NetAddress address{.port = default_port};
  std::string_view rest;
  if (text.starts_with('[')) {
    const size_t end = text.find(']');
    if (end == std::string_view::npos) return bad;
    address.host = text.substr(1, end - 1);
    rest = text.substr(end + 1);
  } else if (text.find(':') != text.rfind(':')) {
    address.host = text;  // a bare IPv6 address
  } else {
    address.host = text.substr(0, text.find(':'));
    rest = text.substr(address.host.size());
  }
  const bool is_clean = std::all_of(address.host.begin(), address.host.end(), [](char c) {
    return c > ' ' && c < 127 && c != '[' && c != ']' && c != '/';
  });
  if (address.host.empty() || address.host.size() > 255 || !is_clean) return bad;
  if (rest.empty()) return address;
  if (rest.front() != ':') return bad;
  rest.remove_prefix(1);
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), address.port);
  if (error != std::errc() || end != rest.data() + rest.size() || address.port == 0) return bad;
  return address;
}

bool FrameConnection::is_open() const {
  return socket_ && socket_->is_open();
}

const PublicKey& FrameConnection::peer_key() const {
  LOCKSTEP_CHECK(socket_);
  return socket_->peer_key();
}

const std::string& FrameConnection::peer_host() const {
  LOCKSTEP_CHECK(socket_);
  return socket_->peer_host();
}

const Digest& FrameConnection::session_secret() const {
  LOCKSTEP_CHECK(socket_);
  return socket_->session_secret();
}

void FrameConnection::set_events(Events events) {
  if (socket_) socket_->set_events(std::move(events));
}

void FrameConnection::trust() {
  if (socket_) socket_->trust();
}

void FrameConnection::set_trust_timeout(std::chrono::milliseconds from_now) {
  if (socket_) socket_->set_trust_timeout(from_now);
}

void FrameConnection::set_silence_max(std::chrono::milliseconds silence_max) {
  if (socket_) socket_->set_silence_max(silence_max);
}

void FrameConnection::send(std::string_view frame) {
  if (socket_) socket_->send(frame);
}

size_t FrameConnection::unsent_bytes() const {
  return socket_ ? socket_->unsent_bytes() : 0;
}

void FrameConnection::pause() {
  if (socket_) socket_->pause();
}

void FrameConnection::resume() {
  if (socket_) socket_->resume();
}

void FrameConnection::close() {
  if (socket_) socket_->close();
}

void FrameConnection::fail(Error error) {
  if (socket_) socket_->fail(std::move(error));
}

void FrameConnection::finish() {
  if (socket_) socket_->finish();
}

}  // namespace lockstep
