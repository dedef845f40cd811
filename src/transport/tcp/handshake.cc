#include "transport/tcp/handshake.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string_view>

#include "base/byte_text.h"
#include "transport/frame.h"
#include "transport/tcp/socket.h"

namespace lockstep {
namespace {

std::span<const std::byte> whole(const Hello& hello) {
  return std::as_bytes(std::span(&hello, 1));
}

std::span<const std::byte> unproved(const Hello& hello) {
  return whole(hello).first(offsetof(Hello, proof));
}

// The first bytes on a connection always fit.
Status send_all(int fd, std::span<const std::byte> bytes) {
  if (::send(fd, bytes.data(), bytes.size(), kSendFlags) == static_cast<ssize_t>(bytes.size())) {
    return Ok{};
  }
  return socket_error(ErrorCode::kPeerLost, "sending the greeting failed");
}

}  // namespace

Handshake Handshake::call(const Options& options, int peer, int rail) {
  Handshake handshake(options, true);
  handshake.peer_ = peer;
  handshake.rail_ = rail;
  return handshake;
}

Handshake Handshake::answer(const Options& options) {
  Handshake handshake(options, false);
  handshake.state_ = State::kAwaitingHello;
  return handshake;
}

Result<bool> Handshake::advance(int fd) {
  if (state_ == State::kStart) {
    TRY(introduce(fd));
    state_ = State::kAwaitingHello;
  }
  if (state_ == State::kAwaitingHello) {
    if (!TRY(receive_hello(fd))) return false;
    TRY(check_hello());
    received_ = 0;
    if (!is_caller_) TRY(introduce(fd));
    TRY(check_agreement());
    if (is_caller_) TRY(send_all(fd, TRY(final_proof())));
    state_ = is_caller_ ? State::kDone : State::kAwaitingProof;
  }
  if (state_ == State::kAwaitingProof) {
    if (!TRY(receive(fd, std::as_writable_bytes(std::span(proof_))))) return false;
    if (!is_same_secret(proof_, TRY(final_proof()))) {
      return Error{ErrorCode::kCorrupt, "the other end repeats an old greeting"};
    }
    state_ = State::kDone;
  }
  return true;
}

bool Handshake::is_late() const {
  const bool is_hello = other_.magic == Hello::kMagic && other_.version == Hello::kVersion;
  return is_hello && received_ == sizeof(Hello) && other_.epoch != options_.epoch;
}

Result<bool> Handshake::receive(int fd, std::span<std::byte> all) {
  const auto left = all.subspan(received_);
  const ssize_t received = ::recv(fd, left.data(), left.size(), MSG_DONTWAIT);
  if (received == 0) return Error{ErrorCode::kPeerLost, "the connection was closed"};
  if (received < 0) {
    if (is_try_later(errno)) return false;
    return socket_error(ErrorCode::kPeerLost, "the connection ended");
  }
  received_ += static_cast<size_t>(received);
  return received_ == all.size();
}

// Another version's Hello may be shorter than ours, so the version is checked first.
Result<bool> Handshake::receive_hello(int fd) {
  const bool is_complete = TRY(receive(fd, std::as_writable_bytes(std::span(&other_, 1))));
  if (received_ < Hello::kPrefixBytes) return false;
  if (other_.magic != Hello::kMagic) {
    return Error{ErrorCode::kCorrupt, "the other end is not lockstep"};
  }
  if (other_.version != Hello::kVersion) {
    if (!is_caller_) static_cast<void>(send_all(fd, whole(Hello()).first(Hello::kPrefixBytes)));
    return Error{ErrorCode::kUnsupported,
                 fmt::format("the other end speaks version {} of links, this one version {}: run "
                             "the same lockstep everywhere",
                             other_.version, Hello::kVersion)};
  }
  return is_complete;
}

// Sends our Hello. A listener's proof covers the caller's Hello.
Status Handshake::introduce(int fd) {
  own_.epoch = options_.epoch;
  own_.from = static_cast<uint32_t>(options_.rank);
  own_.to = static_cast<uint32_t>(peer_);
  own_.rail = static_cast<uint16_t>(rail_);
  own_.rails = static_cast<uint16_t>(options_.rails);
  own_.flags = (options_.encrypts ? Hello::kEncrypts : 0) | (has_fast_aes() ? Hello::kFastAes : 0);
  TRY(fill_random(own_.nonce));
  own_.proof = TRY(hello_proof(is_caller_));
  return send_all(fd, whole(own_));
}

// Whether the other end knows the token and wants this rank.
Status Handshake::check_hello() {
  const bool is_proved = is_same_secret(other_.proof, TRY(hello_proof(!is_caller_)));
  const bool is_of_group =
      other_.epoch == options_.epoch && other_.to == static_cast<uint32_t>(options_.rank);
  const bool is_expected = is_caller_
                               ? other_.from == static_cast<uint32_t>(peer_) && other_.rail == rail_
                               : other_.from > static_cast<uint32_t>(options_.rank) &&
                                     other_.from < static_cast<uint32_t>(options_.size);
  if (!is_proved || !is_of_group || !is_expected) {
    return Error{ErrorCode::kCorrupt, "the other end is not of this group"};
  }
  peer_ = static_cast<int>(other_.from);
  rail_ = other_.rail;
  is_proved_ = true;
  return Ok{};
}

// Ranks of one group that were set up differently. Both Hellos have been exchanged by now, so both
// ends report it.
Status Handshake::check_agreement() const {
  const auto refuse = [&](std::string what) {
    return Error{ErrorCode::kUnsupported, fmt::format("rank {} {}; start all ranks with the same "
                                                      "link options",
                                                      peer_, what)};
  };
  if (((own_.flags ^ other_.flags) & Hello::kEncrypts) != 0) {
    return refuse(options_.encrypts ? "does not encrypt its links and this rank does"
                                    : "encrypts its links and this rank does not");
  }
  if (own_.rails != other_.rails || other_.rail >= own_.rails) {
    return refuse(fmt::format("has {} rails and this rank {}", other_.rails, own_.rails));
  }
  return Ok{};
}

Result<Digest> Handshake::hello_proof(bool of_caller) const {
  if (of_caller) {
    return hmac_sha256(options_.token, {bytes_of("lockstep caller"), unproved(caller_hello())});
  }
  return hmac_sha256(options_.token, {bytes_of("lockstep listener"), whole(caller_hello()),
                                      unproved(listener_hello())});
}

Result<Digest> Handshake::final_proof() const {
  return hmac_sha256(options_.token,
                     {bytes_of("lockstep done"), whole(caller_hello()), whole(listener_hello())});
}

Result<std::optional<LinkKeys>> Handshake::keys() const {
  if (!options_.encrypts) return std::optional<LinkKeys>();
  const auto first = whole(caller_hello()), second = whole(listener_hello());
  std::array<std::byte, 2 * sizeof(Hello)> both;
  std::memcpy(both.data(), first.data(), first.size());
  std::memcpy(both.data() + first.size(), second.data(), second.size());
  LinkKeys keys;
  const bool has_aes = (own_.flags & other_.flags & Hello::kFastAes) != 0;
  keys.cipher = has_aes ? AeadCipher::kAes128Gcm : AeadCipher::kChaCha20Poly1305;
  keys.send = TRY(hkdf_sha256(options_.token, both, "lockstep link from caller"));
  keys.receive = TRY(hkdf_sha256(options_.token, both, "lockstep link from listener"));
  if (!is_caller_) std::swap(keys.send, keys.receive);
  return std::optional(keys);
}

Result<UniqueFd> start_connect(const TcpAddress& address, const std::string& from) {
  auto info = TRY(resolve_numeric(address.host, address.port));
  UniqueFd fd = TRY(open_tcp_socket(info->ai_family));
  if (!from.empty()) {
    auto own = TRY(resolve_numeric(from, 0));
    if (own->ai_family == info->ai_family && ::bind(fd.get(), own->ai_addr, own->ai_addrlen) != 0) {
      return socket_error(ErrorCode::kPeerLost, "calling from " + from + " failed");
    }
  }
  if (::connect(fd.get(), info->ai_addr, info->ai_addrlen) != 0 && errno != EINPROGRESS &&
      errno != EINTR) {
    return socket_error(ErrorCode::kPeerLost, "connecting failed");
  }
  return fd;
}

int connect_error(int fd) {
  int error_number = 0;
  socklen_t length = sizeof(error_number);
  if (::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error_number, &length) != 0) return errno;
  return error_number;
}

}  // namespace lockstep
