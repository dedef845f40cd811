// Connections from one other machine: simulated here with a non-loopback address of this machine.
#include <doctest/doctest.h>
#include <ifaddrs.h>
#include <net/if.h>

#include <chrono>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "net/http/http_server.h"
#include "net/raw_client.h"

namespace lockstep {
namespace {

std::optional<uint32_t> own_address() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return std::nullopt;
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, ::freeifaddrs);
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    const bool is_ipv4 = one->ifa_addr != nullptr && one->ifa_addr->sa_family == AF_INET;
    if (!is_ipv4 || (one->ifa_flags & IFF_LOOPBACK) != 0 || (one->ifa_flags & IFF_UP) == 0) {
      continue;
    }
    return ntohl(reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr.s_addr);
  }
  return std::nullopt;
}

// Whether a client that connects to `address` is answered.
bool is_answered(RawClient& client) {
  client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  return client.read_reply().find("HTTP/1.1 200 ") == 0;
}

}  // namespace

TEST_CASE("a remote machine's connections are limited, and one that ends frees a place") {
  const std::optional<uint32_t> address = own_address();
  if (!address) {
    MESSAGE("this machine has no address but loopback ones: not tested");
    return;
  }
  HttpServer::Limits limits;
  limits.connections_of_address_max = 2;
  auto server =
      HttpServer::listen("*", 0, limits, [](const HttpRequest& request, const HttpReply& reply) {
        reply.send({.status = request.is_from_this_machine ? 500 : 200, .body = request.address});
      });
  REQUIRE(server.ok());
  std::thread thread([&] { server.value()->run(); });
  const uint16_t port = server.value()->port();
  {
    RawClient first(port, 0, *address);
    RawClient second(port, 0, *address);
    CHECK(is_answered(first));
    CHECK(is_answered(second));
    RawClient third(port, 0, *address);
    CHECK(third.read_to_end().find("HTTP/1.1 503 ") == 0);
    // Local programs have no such limit.
    std::vector<std::unique_ptr<RawClient>> own;
    for (int i = 0; i < 4; ++i) {
      own.push_back(std::make_unique<RawClient>(port));
      own.back()->send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
      CHECK(own.back()->read_reply().find("127.0.0.1") != std::string::npos);
    }
    first.close();
    bool is_in = false;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!is_in && std::chrono::steady_clock::now() < deadline) {
      RawClient next(port, 0, *address);
      is_in = is_answered(next);
    }
    CHECK(is_in);
  }
  server.value()->stop_now();
  thread.join();
}

}  // namespace lockstep
