#include "transport/rendezvous.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "transport/handshake.h"
#include "transport/socket.h"
#include "transport/tcp_link.h"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kBacklog = 64;
constexpr size_t kGuestsMax = 64;  // accepted connections that have not said who they are
constexpr std::chrono::milliseconds kGuestTime{2'000};  // for saying it
constexpr std::chrono::milliseconds kRetryAfter{20};    // between two attempts to reach a rank
constexpr std::chrono::milliseconds kLookAtCancelled{20};

// A connection that somebody made to us.
struct Guest {
  UniqueFd socket;
  HelloReader reader;
  Clock::time_point deadline;
};

// Our way to a lower rank.
struct Call {
  enum class State { kWaiting, kConnecting, kAwaitingReply, kDone };
  State state = State::kWaiting;
  UniqueFd socket;
  HelloReader reader;
  Clock::time_point retry_at{};
  std::string last_failure = "no attempt was made";
};

class Rendezvous {
 public:
  Rendezvous(const TcpListener& listener, std::span<const TcpAddress> addresses,
             const RendezvousOptions& options)
      : listener_(listener),
        addresses_(addresses),
        options_(options),
        calls_(static_cast<size_t>(options.rank)),
        links_(addresses.size()) {}

  Result<std::vector<std::unique_ptr<Link>>> run();

 private:
  int first_missing() const;
  void start_calls();
  void wait_for_events(Clock::time_point deadline);
  Status advance_call(size_t rank);
  void fail_call(size_t rank, std::string reason);
  void accept_guests();
  void hear_guests();
  bool is_settled(Guest& guest);
  Status admit(UniqueFd socket, int rank);
  Hello hello_to(int rank) const;

  const TcpListener& listener_;
  std::span<const TcpAddress> addresses_;
  const RendezvousOptions& options_;
  std::vector<Call> calls_;  // (lower ranks)
  std::vector<Guest> guests_;
  std::vector<std::unique_ptr<Link>> links_;
  std::vector<pollfd> polled_;
};

Result<std::vector<std::unique_ptr<Link>>> Rendezvous::run() {
  const Clock::time_point deadline = Clock::now() + options_.timeout;
  for (int missing; (missing = first_missing()) >= 0;) {
    if (options_.cancelled && options_.cancelled->load(std::memory_order_relaxed)) {
      return Error{ErrorCode::kCancelled, "connecting the ranks was cancelled"};
    }
    if (Clock::now() > deadline) {
      std::string what = "no connection within " + std::to_string(options_.timeout.count()) + " ms";
      if (missing < options_.rank) what += ": " + calls_[static_cast<size_t>(missing)].last_failure;
      return peer_error(ErrorCode::kTimeout, missing, what.c_str());
    }
    start_calls();
    wait_for_events(deadline);
    accept_guests();
    hear_guests();
  }
  return std::move(links_);
}

int Rendezvous::first_missing() const {
  for (size_t rank = 0; rank < links_.size(); ++rank) {
    if (!links_[rank] && static_cast<int>(rank) != options_.rank) return static_cast<int>(rank);
  }
  return -1;
}

void Rendezvous::start_calls() {
  for (size_t rank = 0; rank < calls_.size(); ++rank) {
    Call& call = calls_[rank];
    if (call.state != Call::State::kWaiting || Clock::now() < call.retry_at) continue;
    Result<UniqueFd> socket = start_connect(addresses_[rank]);
    if (!socket.ok()) {
      fail_call(rank, std::move(socket.error().message));
      continue;
    }
    call.socket = std::move(socket.value());
    call.reader = HelloReader();
    call.state = Call::State::kConnecting;
  }
}

// Sleeps until something can be done, and does it for the calls.
void Rendezvous::wait_for_events(Clock::time_point deadline) {
  polled_.clear();
  for (const Call& call : calls_) {
    const bool is_connecting = call.state == Call::State::kConnecting;
    polled_.push_back({call.socket.get(), static_cast<short>(is_connecting ? POLLOUT : POLLIN), 0});
  }
  polled_.push_back({listener_.fd(), POLLIN, 0});
  for (const Guest& guest : guests_) polled_.push_back({guest.socket.get(), POLLIN, 0});
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
  const auto sleep = std::max(std::chrono::milliseconds{0}, std::min(left, kLookAtCancelled));
  // A negative descriptor, of a call that waits for its next attempt, is skipped by poll().
  ::poll(polled_.data(), static_cast<nfds_t>(polled_.size()), static_cast<int>(sleep.count()));
  for (size_t rank = 0; rank < calls_.size(); ++rank) {
    if (polled_[rank].revents == 0) continue;
    if (Status status = advance_call(rank); !status.ok()) {
      fail_call(rank, std::move(status.error().message));
    }
  }
}

Status Rendezvous::advance_call(size_t rank) {
  Call& call = calls_[rank];
  const int fd = call.socket.get();
  if (call.state == Call::State::kConnecting) {
    if (const int error_number = connect_error(fd); error_number != 0) {
      return Error{ErrorCode::kPeerLost, std::strerror(error_number)};
    }
    if (!send_hello(fd, hello_to(static_cast<int>(rank)))) {
      return socket_error(ErrorCode::kPeerLost, "sending the greeting failed");
    }
    call.state = Call::State::kAwaitingReply;
    return Ok{};
  }
  if (!TRY(call.reader.read(fd))) return Ok{};
  const Hello& reply = call.reader.hello();
  if (!is_of_group(reply, options_) || reply.from != rank) {
    return Error{ErrorCode::kCorrupt, "the other end is not of this group"};
  }
  TRY(admit(std::move(call.socket), static_cast<int>(rank)));
  call.state = Call::State::kDone;
  return Ok{};
}

void Rendezvous::fail_call(size_t rank, std::string reason) {
  Call& call = calls_[rank];
  const TcpAddress& address = addresses_[rank];
  call.last_failure = address.host + ":" + std::to_string(address.port) + ": " + reason;
  call.socket.reset();
  call.state = Call::State::kWaiting;
  call.retry_at = Clock::now() + kRetryAfter;
}

void Rendezvous::accept_guests() {
  for (;;) {
    UniqueFd socket(::accept(listener_.fd(), nullptr, nullptr));
    if (!socket.is_open() || !set_up_socket(socket.get()).ok()) return;
    // Silent strangers must not keep a rank out: the oldest one goes.
    if (guests_.size() == kGuestsMax) guests_.erase(guests_.begin());
    guests_.push_back({std::move(socket), HelloReader(), Clock::now() + kGuestTime});
  }
}

void Rendezvous::hear_guests() {
  std::erase_if(guests_, [this](Guest& guest) { return is_settled(guest); });
}

// Admits the guest, or turns it away; false while it has not said who it is.
bool Rendezvous::is_settled(Guest& guest) {
  Result<bool> is_complete = guest.reader.read(guest.socket.get());
  if (!is_complete.ok()) return true;
  if (!is_complete.value()) return Clock::now() > guest.deadline;
  const Hello& hello = guest.reader.hello();
  const bool is_higher_rank =
      hello.from > static_cast<uint32_t>(options_.rank) && hello.from < links_.size();
  if (!is_of_group(hello, options_) || !is_higher_rank) return true;
  const int rank = static_cast<int>(hello.from);
  if (!send_hello(guest.socket.get(), hello_to(rank))) return true;
  // A rank that calls again has given its first connection up. One that cannot be admitted stays
  // missing.
  static_cast<void>(admit(std::move(guest.socket), rank).ok());
  return true;
}

Status Rendezvous::admit(UniqueFd socket, int rank) {
  links_[static_cast<size_t>(rank)] =
      TRY(TcpLink::open(std::move(socket), {.peer = rank, .epoch = options_.epoch}));
  return Ok{};
}

Hello Rendezvous::hello_to(int rank) const {
  Hello hello;
  hello.epoch = options_.epoch;
  hello.token = options_.token;
  hello.from = static_cast<uint32_t>(options_.rank);
  hello.to = static_cast<uint32_t>(rank);
  return hello;
}

}  // namespace

Result<TcpListener> TcpListener::open(const std::string& host) {
  auto info = TRY(resolve_numeric(host, 0));
  UniqueFd fd = TRY(open_tcp_socket(info->ai_family));
  if (::bind(fd.get(), info->ai_addr, info->ai_addrlen) != 0 || ::listen(fd.get(), kBacklog) != 0) {
    return socket_error(ErrorCode::kInvalidArgument, "listening on " + host + " failed");
  }
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

Result<std::vector<std::unique_ptr<Link>>> connect_ranks(const TcpListener& listener,
                                                         std::span<const TcpAddress> addresses,
                                                         const RendezvousOptions& options) {
  LOCKSTEP_CHECK(options.rank >= 0 && static_cast<size_t>(options.rank) < addresses.size());
  return Rendezvous(listener, addresses, options).run();
}

}  // namespace lockstep
