#include "transport/tcp/rendezvous.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <optional>
#include <utility>

#include "base/check.h"
#include "transport/frame.h"
#include "transport/railed_link.h"
#include "transport/tcp/handshake.h"
#include "transport/tcp/socket.h"
#include "transport/tcp/tcp_link.h"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kBacklog = 64;
constexpr size_t kGuestsMax = 64;  // accepted connections that have not identified themselves
constexpr std::chrono::milliseconds kGuestTime{2'000};  // for identifying itself
constexpr std::chrono::milliseconds kRetryAfter{20};    // between two attempts to reach a rank
constexpr std::chrono::milliseconds kLookAtCancelled{20};
// For a rank of this group with other link options: it may still be restarted within this time.
constexpr std::chrono::milliseconds kRefusalGrace{1'000};

constexpr const char* kAnyIpv4 = "0.0.0.0";
constexpr const char* kAny = "::";

bool is_loopback(const TcpAddress& address) {
  return address.host == "::1" || address.host.starts_with("127.");
}

bool is_wildcard(const TcpAddress& address) {
  return address.host == kAny || address.host == kAnyIpv4;
}

// An accepted connection.
struct Guest {
  UniqueFd socket;
  Handshake handshake;
  Clock::time_point deadline;
};

// Our connection to a lower rank, for one rail.
struct Call {
  enum class State { kWaiting, kConnecting, kTalking, kDone };
  int rank = 0;
  int rail = 0;
  State state = State::kWaiting;
  UniqueFd socket;
  std::optional<Handshake> handshake;
  Clock::time_point retry_at{};
  std::string last_failure = "no attempt was made";
};

class Rendezvous {
 public:
  Rendezvous(const TcpListener& listener, std::span<const TcpAddress> addresses,
             const RendezvousOptions& options);

  Result<PeerConnections> run();

 private:
  struct Missing {
    int rank = 0;
    int rail = 0;
  };
  std::optional<Missing> first_missing() const;
  Error timed_out(Missing missing) const;
  void start_calls();
  Status wait_for_events(Clock::time_point deadline);
  Status advance_call(Call& call);
  void fail_call(Call& call, std::string reason);
  void accept_guests();
  void hear_guests();
  bool is_settled(Guest& guest);
  Status admit(UniqueFd socket, const Handshake& handshake);

  const TcpListener& listener_;
  std::span<const TcpAddress> addresses_;
  const RendezvousOptions& options_;
  Handshake::Options handshake_;
  std::vector<Call> calls_;
  std::vector<Guest> guests_;
  std::string last_refusal_;      // why a rank of this group was rejected; empty: none was
  Clock::time_point refused_at_;  // time of the first rejection
  std::string other_version_;     // what an unproved guest claimed; empty: none did
  PeerConnections connections_;
  std::vector<pollfd> polled_;
};

Rendezvous::Rendezvous(const TcpListener& listener, std::span<const TcpAddress> addresses,
                       const RendezvousOptions& options)
    : listener_(listener), addresses_(addresses), options_(options) {
  const int size = static_cast<int>(addresses.size());
  handshake_ = {.rank = options.rank,
                .size = size,
                .epoch = options.epoch,
                .token = options.token,
                .rails = options.link.rails,
                .encrypts = is_encrypted(options.link, addresses)};
  connections_.resize(addresses.size());
  for (int rank = 0; rank < size; ++rank) {
    if (!is_joined(options.link, size, options.rank, rank)) continue;
    connections_[static_cast<size_t>(rank)].resize(static_cast<size_t>(options.link.rails));
    for (int rail = 0; rank < options.rank && rail < options.link.rails; ++rail) {
      calls_.push_back({.rank = rank, .rail = rail});
    }
  }
}

Result<PeerConnections> Rendezvous::run() {
  const Clock::time_point deadline = Clock::now() + options_.timeout;
  while (const auto missing = first_missing()) {
    if (options_.cancelled && options_.cancelled->load(std::memory_order_relaxed)) {
      return Error{ErrorCode::kCancelled, "connecting the ranks was cancelled"};
    }
    if (Clock::now() > deadline) return timed_out(*missing);
    if (!last_refusal_.empty() && Clock::now() > refused_at_ + kRefusalGrace) {
      return peer_error(ErrorCode::kUnsupported, missing->rank, last_refusal_.c_str());
    }
    start_calls();
    TRY(wait_for_events(deadline));
    accept_guests();
    hear_guests();
  }
  return std::move(connections_);
}

std::optional<Rendezvous::Missing> Rendezvous::first_missing() const {
  for (size_t rank = 0; rank < connections_.size(); ++rank) {
    for (size_t rail = 0; rail < connections_[rank].size(); ++rail) {
      if (!connections_[rank][rail].socket.is_open()) {
        return Missing{static_cast<int>(rank), static_cast<int>(rail)};
      }
    }
  }
  return std::nullopt;
}

Error Rendezvous::timed_out(Missing missing) const {
  std::string what = "no connection within " + std::to_string(options_.timeout.count()) + " ms";
  const auto is_call = [&](const Call& call) {
    return call.rank == missing.rank && call.rail == missing.rail;
  };
  const auto call = std::find_if(calls_.begin(), calls_.end(), is_call);
  if (call != calls_.end()) {
    what += ": " + call->last_failure;
  } else if (!last_refusal_.empty()) {
    what += ": " + last_refusal_;
  } else if (!other_version_.empty()) {
    what += ": " + other_version_;
  }
  return peer_error(ErrorCode::kTimeout, missing.rank, what.c_str());
}

// Calls are made from this rank's own listening address unless that is a wildcard: an address
// stands for a network, or for an RDMA device.
void Rendezvous::start_calls() {
  const TcpAddress& own = addresses_[static_cast<size_t>(options_.rank)];
  for (Call& call : calls_) {
    if (call.state != Call::State::kWaiting || Clock::now() < call.retry_at) continue;
    const TcpAddress& other = addresses_[static_cast<size_t>(call.rank)];
    const bool is_free = is_wildcard(own) || is_loopback(own) != is_loopback(other);
    Result<UniqueFd> socket =
        start_connect(other, !other.from.empty() ? other.from : (is_free ? "" : own.host));
    if (!socket.ok()) {
      fail_call(call, std::move(socket.error().message));
      continue;
    }
    call.socket = std::move(socket.value());
    call.handshake = Handshake::call(handshake_, call.rank, call.rail);
    call.state = Call::State::kConnecting;
  }
}

// Sleeps until something can be done, and advances the calls.
Status Rendezvous::wait_for_events(Clock::time_point deadline) {
  polled_.clear();
  for (const Call& call : calls_) {
    const bool is_connecting = call.state == Call::State::kConnecting;
    polled_.push_back({call.socket.get(), static_cast<short>(is_connecting ? POLLOUT : POLLIN), 0});
  }
  polled_.push_back({listener_.fd(), POLLIN, 0});
  for (const Guest& guest : guests_) polled_.push_back({guest.socket.get(), POLLIN, 0});
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
  const auto sleep = std::max(std::chrono::milliseconds{0}, std::min(left, kLookAtCancelled));
  // poll() skips the negative descriptor of a call that waits for its next attempt.
  ::poll(polled_.data(), static_cast<nfds_t>(polled_.size()), static_cast<int>(sleep.count()));
  for (size_t i = 0; i < calls_.size(); ++i) {
    if (polled_[i].revents == 0) continue;
    Status status = advance_call(calls_[i]);
    if (status.ok()) continue;
    if (status.error().code == ErrorCode::kUnsupported) {
      return peer_error(ErrorCode::kUnsupported, calls_[i].rank, status.error().message.c_str());
    }
    fail_call(calls_[i], std::move(status.error().message));
  }
  return Ok{};
}

Status Rendezvous::advance_call(Call& call) {
  const int fd = call.socket.get();
  if (call.state == Call::State::kConnecting) {
    if (const int error_number = connect_error(fd); error_number != 0) {
      return Error{ErrorCode::kPeerLost, std::strerror(error_number)};
    }
    call.state = Call::State::kTalking;
  }
  if (!TRY(call.handshake->advance(fd))) return Ok{};
  TRY(admit(std::move(call.socket), *call.handshake));
  call.state = Call::State::kDone;
  return Ok{};
}

void Rendezvous::fail_call(Call& call, std::string reason) {
  const TcpAddress& address = addresses_[static_cast<size_t>(call.rank)];
  call.last_failure = address.host + ":" + std::to_string(address.port) + ": " + reason;
  call.socket.reset();
  call.state = Call::State::kWaiting;
  call.retry_at = Clock::now() + kRetryAfter;
}

void Rendezvous::accept_guests() {
  for (;;) {
    UniqueFd socket(::accept(listener_.fd(), nullptr, nullptr));
    if (!socket.is_open() || !set_up_socket(socket.get()).ok()) return;
    // Silent strangers must not keep a rank out: drop the oldest.
    if (guests_.size() == kGuestsMax) guests_.erase(guests_.begin());
    guests_.push_back(
        {std::move(socket), Handshake::answer(handshake_), Clock::now() + kGuestTime});
  }
}

void Rendezvous::hear_guests() {
  std::erase_if(guests_, [this](Guest& guest) { return is_settled(guest); });
}

// Admits or rejects the guest; false while it has not identified itself.
bool Rendezvous::is_settled(Guest& guest) {
  Result<bool> is_done = guest.handshake.advance(guest.socket.get());
  if (!is_done.ok()) {
    if (options_.late_count && guest.handshake.is_late()) ++*options_.late_count;
    // Anyone can claim to be another version; the rank that we wait for may still call.
    const bool is_refused = is_done.error().code == ErrorCode::kUnsupported;
    if (is_refused && !guest.handshake.is_proved()) {
      other_version_ = std::move(is_done.error().message);
    } else if (is_refused) {
      if (last_refusal_.empty()) refused_at_ = Clock::now();
      last_refusal_ = std::move(is_done.error().message);
    }
    return true;
  }
  if (!is_done.value()) return Clock::now() > guest.deadline;
  // A rank that calls again has given up its first connection. A rank that cannot be admitted stays
  // missing.
  static_cast<void>(admit(std::move(guest.socket), guest.handshake).ok());
  return true;
}

Status Rendezvous::admit(UniqueFd socket, const Handshake& handshake) {
  std::optional<LinkKeys> keys = TRY(handshake.keys());
  auto& rails = connections_[static_cast<size_t>(handshake.peer())];
  const auto rail = static_cast<size_t>(handshake.rail());
  if (rail >= rails.size()) return Ok{};  // this rank has no link to that one
  rails[rail] = {std::move(socket), keys};
  return Ok{};
}

Result<UniqueFd> listen_at(const std::string& host) {
  auto info = TRY(resolve_numeric(host, 0));
  UniqueFd fd = TRY(open_tcp_socket(info->ai_family));
  if (host == kAny) {  // IPv4 callers too, whatever the system's default
    const int off = 0;
    ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
  }
  if (::bind(fd.get(), info->ai_addr, info->ai_addrlen) != 0 || ::listen(fd.get(), kBacklog) != 0) {
    return socket_error(ErrorCode::kInvalidArgument, "listening on " + host + " failed");
  }
  return fd;
}

}  // namespace

Result<TcpListener> TcpListener::open(const std::string& host) {
  Result<UniqueFd> opened = listen_at(host);
  if (!opened.ok() && host == kAny) opened = listen_at(kAnyIpv4);
  UniqueFd fd = TRY(std::move(opened));
  sockaddr_storage bound{};
  socklen_t length = sizeof(bound);
  if (::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&bound), &length) != 0) {
    return socket_error(ErrorCode::kInternal, "asking for the port failed");
  }
  const uint16_t port = bound.ss_family == AF_INET6
                            ? reinterpret_cast<const sockaddr_in6&>(bound).sin6_port
                            : reinterpret_cast<const sockaddr_in&>(bound).sin_port;
  return TcpListener(std::move(fd), {host, ntohs(port)});
}

bool is_encrypted(const LinkOptions& link, std::span<const TcpAddress> addresses) {
  if (link.encrypts || link.plain) return link.encrypts;
  const auto wildcards = std::count_if(addresses.begin(), addresses.end(), is_wildcard);
  const auto local = std::count_if(addresses.begin(), addresses.end(), is_loopback);
  return static_cast<size_t>(local + std::min<std::ptrdiff_t>(wildcards, 1)) < addresses.size();
}

Result<PeerConnections> connect_sockets(const TcpListener& listener,
                                        std::span<const TcpAddress> addresses,
                                        const RendezvousOptions& options) {
  LOCKSTEP_CHECK(options.rank >= 0 && static_cast<size_t>(options.rank) < addresses.size());
  TRY(check_link_options(options.link));
  return Rendezvous(listener, addresses, options).run();
}

Result<std::vector<std::unique_ptr<Link>>> open_tcp_links(PeerConnections connections,
                                                          const LinkOptions& link, uint32_t epoch) {
  std::vector<std::unique_ptr<Link>> links(connections.size());
  for (size_t peer = 0; peer < links.size(); ++peer) {
    if (connections[peer].empty()) continue;
    const int rank = static_cast<int>(peer);
    std::vector<std::unique_ptr<Link>> rails;
    for (PeerConnection& connection : connections[peer]) {
      rails.push_back(TRY(TcpLink::open(std::move(connection.socket),
                                        {.peer = rank, .epoch = epoch, .keys = connection.keys})));
    }
    links[peer] = join_rails(std::move(rails), link, rank);
  }
  return links;
}

}  // namespace lockstep
