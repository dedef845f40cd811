#include "transport/tcp/rendezvous.h"

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>
#include <thread>

#include "base/threads/wait.h"
#include "transport/tcp/handshake.h"
#include "transport/tcp/socket.h"

using namespace lockstep;

namespace {

constexpr GroupToken kToken{std::byte{1}, std::byte{2}, std::byte{3}};
using Links = std::vector<std::unique_ptr<Link>>;

// Sockets to all ranks, and links over them.
Result<Links> connect_ranks(const TcpListener& listener, std::span<const TcpAddress> addresses,
                            const RendezvousOptions& options) {
  return open_tcp_links(TRY(connect_sockets(listener, addresses, options)), options.link,
                        options.epoch);
}

struct Ranks {
  std::vector<TcpListener> listeners;
  std::vector<TcpAddress> addresses;

  explicit Ranks(int size, const char* host = "127.0.0.1") {
    for (int rank = 0; rank < size; ++rank) {
      listeners.push_back(std::move(TcpListener::open(host).value()));
      addresses.push_back(listeners.back().address());
    }
  }
  Result<Links> connect(int rank, RendezvousOptions options) {
    options.rank = rank;
    return connect_ranks(listeners[static_cast<size_t>(rank)], addresses, options);
  }
};

// Sends `hello` to a listening rank and returns the connection.
UniqueFd greet(const TcpAddress& address, const void* hello, size_t bytes) {
  auto info = std::move(resolve_numeric(address.host, address.port).value());
  UniqueFd fd(::socket(info->ai_family, SOCK_STREAM, 0));
  REQUIRE(::connect(fd.get(), info->ai_addr, info->ai_addrlen) == 0);
  REQUIRE(::send(fd.get(), hello, bytes, 0) == static_cast<ssize_t>(bytes));
  return fd;
}

// A connection on which a rank has sent its first message.
UniqueFd call(const TcpAddress& address, const Handshake::Options& options, int peer) {
  UniqueFd fd = greet(address, "", 0);
  CHECK_FALSE(Handshake::call(options, peer, 0).advance(fd.get()).value());
  return fd;
}

void check_connected(Link& from, Link& to) {
  const auto frame = from.acquire(3);
  REQUIRE(frame.size() == 3);
  from.post();
  Wait wait(std::chrono::milliseconds{20'000});
  while (to.peek().empty()) REQUIRE(wait.pause("frame").ok());
  CHECK(to.peek().size() == 3);
  to.release();
}

}  // namespace

TEST_CASE("every pair of ranks gets one link") {
  for (const int size : {1, 2, 3, 5}) {
    CAPTURE(size);
    Ranks ranks(size);
    std::vector<Result<Links>> links;
    for (int rank = 0; rank < size; ++rank) links.emplace_back(Links{});
    std::vector<std::thread> threads;
    for (int rank = size - 1; rank >= 0; --rank) {
      threads.emplace_back([&, rank] {
        links[static_cast<size_t>(rank)] = ranks.connect(rank, {.epoch = 3, .token = kToken});
      });
    }
    for (auto& thread : threads) thread.join();
    for (size_t i = 0; i < links.size(); ++i) {
      REQUIRE(links[i].ok());
      CHECK(links[i].value()[i] == nullptr);
      for (size_t j = 0; j < links.size(); ++j) {
        if (i != j) check_connected(*links[i].value()[j], *links[j].value()[i]);
      }
    }
  }
}

TEST_CASE(
    "strangers, wrong tokens and old epochs are rejected and the right rank is still accepted") {
  Ranks ranks(2);
  const Handshake::Options right{.rank = 1, .size = 2, .epoch = 3, .token = kToken};
  Handshake::Options bad[4] = {right, right, right, right};
  bad[0].token[15] = std::byte{1};
  bad[1].epoch = 2;
  bad[2].rank = 0;
  bad[3].rank = 7;
  std::vector<UniqueFd> strangers;
  for (const Handshake::Options& options : bad) {
    strangers.push_back(call(ranks.addresses[0], options, 0));
  }
  strangers.push_back(call(ranks.addresses[0], right, 1));  // for another rank
  strangers.push_back(
      greet(ranks.addresses[0], "GET / HTTP/1.1\r\nHost: somebody.example\r\n\r\n", 43));
  strangers.push_back(greet(ranks.addresses[0], "lock", 4));  // and nothing more
  call(ranks.addresses[0], right, 0);                         // and gone
  Result<Links> first = Links{}, second = Links{};
  uint64_t late_count = 0;
  std::thread thread(
      [&] { first = ranks.connect(0, {.epoch = 3, .token = kToken, .late_count = &late_count}); });
  second = ranks.connect(1, {.epoch = 3, .token = kToken});
  thread.join();
  REQUIRE(first.ok());
  REQUIRE(second.ok());
  check_connected(*first.value()[1], *second.value()[0]);
  CHECK(late_count == 1);
  for (const UniqueFd& stranger : strangers) {  // all of them were closed without an answer
    char byte;
    CHECK(::recv(stranger.get(), &byte, 1, 0) <= 0);
  }
}

// 127.0.0.2 and 127.0.0.1 belong to one machine, whose calls come from the second by default.
TEST_CASE("a rank calls from the address at which it listens") {
  Ranks ranks(1);
  Result<TcpListener> opened = TcpListener::open("127.0.0.2");
  if (!opened.ok()) {
    MESSAGE("skipped: this machine has one loopback address: ", opened.error().message);
    return;
  }
  ranks.listeners.push_back(std::move(opened.value()));
  ranks.addresses.push_back(ranks.listeners.back().address());
  const auto connect = [&](int rank) {
    return connect_sockets(ranks.listeners[static_cast<size_t>(rank)], ranks.addresses,
                           {.rank = rank, .token = kToken});
  };
  Result<PeerConnections> calling{PeerConnections{}};
  std::thread caller([&] { calling = connect(1); });
  const Result<PeerConnections> called = connect(0);
  caller.join();
  REQUIRE(calling.ok());
  REQUIRE(called.ok());
  sockaddr_in from{};
  socklen_t length = sizeof(from);
  REQUIRE(::getpeername(called.value()[1][0].socket.get(), reinterpret_cast<sockaddr*>(&from),
                        &length) == 0);
  CHECK(ntohl(from.sin_addr.s_addr) == 0x7f000002);
}

TEST_CASE("a rank calls each other from the address that is given for that one") {
  const auto opened = TcpListener::open("127.0.0.2");
  if (!opened.ok()) {
    MESSAGE("skipped: this machine has one loopback address: ", opened.error().message);
    return;
  }
  Ranks ranks(3, "0.0.0.0");
  for (TcpAddress& address : ranks.addresses) address.host = "127.0.0.1";
  const auto connect = [&](int rank, const char* from_to_0, const char* from_to_1) {
    std::vector<TcpAddress> addresses = ranks.addresses;
    addresses[0].from = from_to_0;
    addresses[1].from = from_to_1;
    addresses[static_cast<size_t>(rank)].host = "0.0.0.0";
    return connect_sockets(ranks.listeners[static_cast<size_t>(rank)], addresses,
                           {.rank = rank, .token = kToken});
  };
  Result<PeerConnections> of[3] = {PeerConnections{}, PeerConnections{}, PeerConnections{}};
  std::thread second([&] { of[1] = connect(1, "127.0.0.2", ""); });
  std::thread third([&] { of[2] = connect(2, "127.0.0.3", "127.0.0.4"); });
  of[0] = connect(0, "", "");
  second.join();
  third.join();
  for (const auto& each : of) REQUIRE_MESSAGE(each.ok(), each.error().message);
  const auto ends = [&](size_t rank, size_t peer) {
    return socket_ends(of[rank].value()[peer][0].socket.get()).value();
  };
  CHECK(ends(0, 1).peer == "127.0.0.2");
  CHECK(ends(0, 2).peer == "127.0.0.3");
  CHECK(ends(1, 2).peer == "127.0.0.4");
  CHECK(ends(1, 0).own == "127.0.0.2");
  CHECK(ends(2, 1).own == "127.0.0.4");
  CHECK(ends(2, 1).peer == "127.0.0.1");
}

TEST_CASE("the ends of a connection are IPv4 addresses also on a socket for IPv6") {
  Ranks ranks(1, "::");
  UniqueFd calling = greet({"127.0.0.1", ranks.addresses[0].port}, "", 0);
  const UniqueFd called(::accept(ranks.listeners[0].fd(), nullptr, nullptr));
  REQUIRE(called.is_open());
  const SocketEnds ends = socket_ends(called.get()).value();
  CHECK(ends.own == "127.0.0.1");
  CHECK(ends.peer == "127.0.0.1");
  CHECK_FALSE(socket_ends(ranks.listeners[0].fd()).ok());
}

TEST_CASE("a missing rank is an error at the deadline that names it") {
  Ranks ranks(3);
  const auto links =
      ranks.connect(0, {.epoch = 3, .token = kToken, .timeout = std::chrono::milliseconds{50}});
  REQUIRE(!links.ok());
  CHECK(links.error().code == ErrorCode::kTimeout);
  CHECK(links.error().message == "rank 1: no connection within 50 ms");
}

TEST_CASE("a rank whose address refuses is named with the address") {
  Ranks ranks(2);
  ranks.listeners[0] =
      std::move(TcpListener::open("127.0.0.1").value());  // the previous port is free now
  const auto links =
      ranks.connect(1, {.epoch = 3, .token = kToken, .timeout = std::chrono::milliseconds{50}});
  REQUIRE(!links.ok());
  CHECK(links.error().code == ErrorCode::kTimeout);
  CHECK(links.error().message.find("rank 0") == 0);
  CHECK(links.error().message.find("127.0.0.1:") != std::string::npos);
}

TEST_CASE("two ranks with different tokens do not connect") {
  Ranks ranks(2);
  Result<Links> first = Links{};
  const std::chrono::milliseconds timeout{100};
  std::thread thread([&] { first = ranks.connect(0, {.epoch = 3, .timeout = timeout}); });
  const auto second = ranks.connect(1, {.epoch = 3, .token = kToken, .timeout = timeout});
  thread.join();
  CHECK(first.error().code == ErrorCode::kTimeout);
  CHECK(second.error().code == ErrorCode::kTimeout);
}

TEST_CASE("connecting ends when it is cancelled") {
  Ranks ranks(2);
  const std::atomic<bool> cancelled{true};
  const auto links = ranks.connect(0, {.token = kToken, .cancelled = &cancelled});
  CHECK(links.error().code == ErrorCode::kCancelled);
}

TEST_CASE("ranks connect over IPv6 if the machine has it, and a host name is refused") {
  CHECK(TcpListener::open("localhost").error().code == ErrorCode::kInvalidArgument);
  if (!TcpListener::open("::1").ok()) return;
  Ranks ranks(2, "::1");
  Result<Links> first = Links{};
  std::thread thread([&] { first = ranks.connect(0, {.token = kToken}); });
  const auto second = ranks.connect(1, {.token = kToken});
  thread.join();
  CHECK(first.ok());
  CHECK(second.ok());
}

TEST_CASE(
    "a caller that claims another version does not end group formation, and is named afterwards") {
  Ranks ranks(2);
  Hello hello;
  hello.version = 99;
  const UniqueFd stranger = greet(ranks.addresses[0], &hello, Hello::kPrefixBytes);
  // Longer than the wait for a rank of this group with other link options.
  const auto links =
      ranks.connect(0, {.epoch = 3, .token = kToken, .timeout = std::chrono::milliseconds{1'500}});
  REQUIRE(!links.ok());
  CHECK(links.error().code == ErrorCode::kTimeout);
  CHECK(links.error().message.find("rank 1: no connection within 1500 ms: the other end speaks "
                                   "version 99") == 0);
}

TEST_CASE("a rank of another version is named at once by its caller") {
  Ranks ranks(2);
  std::thread old_rank([&] {  // answers the way version 1 is answered: with magic and version
    UniqueFd guest(::accept(ranks.listeners[0].fd(), nullptr, nullptr));
    while (!guest.is_open()) guest.reset(::accept(ranks.listeners[0].fd(), nullptr, nullptr));
    Hello hello;
    hello.version = 1;
    ::send(guest.get(), &hello, Hello::kPrefixBytes, 0);
    char byte;
    while (::recv(guest.get(), &byte, 1, 0) > 0) {
    }
  });
  const auto links = ranks.connect(1, {.epoch = 3, .token = kToken});
  ranks.listeners.clear();
  old_rank.join();
  REQUIRE(!links.ok());
  CHECK(links.error().code == ErrorCode::kUnsupported);
  CHECK(links.error().message.find("rank 0: the other end speaks version 1") == 0);
}

TEST_CASE("rails are paired by the numbers that the ends send, encrypted or not") {
  for (const bool encrypts : {false, true}) {
    CAPTURE(encrypts);
    Ranks ranks(3);
    RendezvousOptions options{.epoch = 3, .token = kToken};
    options.link.rails = 3;
    options.link.encrypts = encrypts;
    std::vector<Result<PeerConnections>> found;
    for (int rank = 0; rank < 3; ++rank) found.emplace_back(PeerConnections{});
    std::vector<std::thread> threads;
    for (int rank = 0; rank < 3; ++rank) {
      threads.emplace_back([&, rank] {
        RendezvousOptions own = options;
        own.rank = rank;
        found[static_cast<size_t>(rank)] =
            connect_sockets(ranks.listeners[static_cast<size_t>(rank)], ranks.addresses, own);
      });
    }
    for (auto& thread : threads) thread.join();
    for (const auto& connections : found) REQUIRE(connections.ok());
    for (size_t rail = 0; rail < 3; ++rail) {
      const PeerConnection& low = found[0].value()[2][rail];
      const PeerConnection& high = found[2].value()[0][rail];
      const auto word = static_cast<char>('a' + rail);
      REQUIRE(::send(high.socket.get(), &word, 1, 0) == 1);
      char heard = 0;
      Wait wait(std::chrono::milliseconds{20'000});
      while (::recv(low.socket.get(), &heard, 1, 0) != 1) REQUIRE(wait.pause("byte").ok());
      CHECK(heard == word);
      REQUIRE(low.keys.has_value() == encrypts);
      if (encrypts) CHECK(low.keys->send == high.keys->receive);
    }
  }
}

TEST_CASE("links are encrypted between machines, and on one machine only on request") {
  const std::vector<TcpAddress> near{{"127.0.0.1", 1}, {"::1", 2}};
  const std::vector<TcpAddress> far{{"127.0.0.1", 1}, {"192.0.2.7", 2}};
  CHECK_FALSE(is_encrypted({.kind = LinkKind::kTcp}, near));
  CHECK(is_encrypted({.kind = LinkKind::kTcp, .encrypts = true}, near));
  CHECK(is_encrypted({.kind = LinkKind::kTcp}, far));
  CHECK_FALSE(is_encrypted({.kind = LinkKind::kTcp, .plain = true}, far));
  for (const char* any : {"0.0.0.0", "::"}) {
    CHECK(is_encrypted({.kind = LinkKind::kTcp}, std::vector<TcpAddress>{{any, 1}, far[1]}));
    CHECK(is_encrypted({.kind = LinkKind::kTcp}, std::vector<TcpAddress>{{any, 1}, {any, 2}}));
    CHECK_FALSE(is_encrypted({.kind = LinkKind::kTcp}, std::vector<TcpAddress>{{any, 1}, near[0]}));
  }
}

TEST_CASE("ranks that listen on every address of their machine can be reached over IPv4 and IPv6") {
  const bool has_ipv6 = TcpListener::open("::1").ok();
  for (const char* any : {"0.0.0.0", "::"}) {
    for (const char* host : {"127.0.0.1", "::1"}) {
      if (host == std::string("::1") && (any == std::string("0.0.0.0") || !has_ipv6)) continue;
      Ranks ranks(2, any);
      const auto connect = [&](int rank) {
        std::vector<TcpAddress> addresses = ranks.addresses;
        addresses[static_cast<size_t>(1 - rank)].host = host;
        return connect_ranks(ranks.listeners[static_cast<size_t>(rank)], addresses,
                             {.rank = rank, .token = kToken});
      };
      Result<Links> first = Links{};
      std::thread thread([&] { first = connect(0); });
      const auto second = connect(1);
      thread.join();
      CHECK(first.ok());
      CHECK(second.ok());
    }
  }
}

TEST_CASE("ranks connect with encrypted rails and receive each other's frames") {
  Ranks ranks(2);
  RendezvousOptions options{.epoch = 3, .token = kToken};
  options.link.rails = 2;
  options.link.encrypts = true;
  Result<Links> first = Links{};
  std::thread thread([&] { first = ranks.connect(0, options); });
  const auto second = ranks.connect(1, options);
  thread.join();
  REQUIRE(first.ok());
  REQUIRE(second.ok());
  for (int i = 0; i < 5; ++i) {
    check_connected(*first.value()[1], *second.value()[0]);
    check_connected(*second.value()[0], *first.value()[1]);
  }
}
