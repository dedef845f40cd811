// Decisions before the server reads a body, and how memory and connections are divided among
// callers.
#include <doctest/doctest.h>

#include <future>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "net/byte_budget.h"
#include "net/caller_network.h"
#include "net/event_loop.h"
#include "net/raw_client.h"
#include "net/running.h"
#include "support/sizes.h"

namespace lockstep {
namespace {

void echo_size(const HttpRequest& request, const HttpReply& reply) {
  reply.send({200, "text/plain", request.path + " " + std::to_string(request.body.size()), {}});
}

// A request with "Key: good" is preferred, any other is refused, except for /open.
HttpServer::Limits with_keys() {
  HttpServer::Limits limits;
  limits.admit = [](HttpRequest& head) {
    HttpAdmission admission;
    const bool has_key = head.header("key").substr(0, 4) == "good";
    admission.is_preferred = has_key;
    admission.is_control = head.path == "/control";
    admission.terms.caller = has_key ? head.header("key").size() : 0;
    admission.terms.headers = {{"X-Terms", "yes"}};
    if (!has_key && head.path != "/open") {
      admission.answer = HttpResponse{401, "text/plain", "no key", {}};
    }
    return admission;
  };
  return limits;
}

std::string post_head(const std::string& path, size_t bytes, const std::string& more = "") {
  return "POST " + path + " HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(bytes) +
         "\r\n" + more + "\r\n";
}

std::string ask(uint16_t port, const std::string& bytes) {
  RawClient client(port);
  client.send(bytes);
  return client.read_reply();
}

}  // namespace

TEST_CASE("a refusal based on the head comes before the body, and ends the connection") {
  bool was_called = false;
  auto limits = with_keys();
  Running server([&](const HttpRequest&, const HttpReply&) { was_called = true; }, limits);
  RawClient client(server.port());
  client.send(post_head("/", 16 * kMiB));  // but no body
  const std::string refusal = client.read_reply();
  CHECK(refusal.starts_with("HTTP/1.1 401 "));
  CHECK(refusal.find("Connection: close\r\n") != std::string::npos);
  CHECK(refusal.find("X-Terms: yes\r\n") != std::string::npos);
  CHECK(refusal.ends_with("no key"));
  RawClient expecting(server.port());
  expecting.send(post_head("/", 16 * kMiB, "Expect: 100-continue\r\n"));
  CHECK(expecting.read_reply().starts_with("HTTP/1.1 401 "));
  // A refused request without a body does not lose its connection.
  RawClient plain(server.port());
  for (int i = 0; i < 2; ++i) {
    plain.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    const std::string again = plain.read_reply();
    CHECK(again.starts_with("HTTP/1.1 401 "));
    CHECK(again.find("Connection: close\r\n") == std::string::npos);
  }
  server.stop();
  CHECK(!was_called);
}

TEST_CASE("strangers with large bodies do not block a caller with a key") {
  auto limits = with_keys();
  Running server(echo_size, limits);
  std::vector<std::unique_ptr<RawClient>> strangers;
  for (int i = 0; i < 16; ++i) {
    strangers.push_back(std::make_unique<RawClient>(server.port()));
    strangers.back()->send(post_head("/", 16 * kMiB));
    strangers.back()->send(std::string(16 * kMiB - 1, 'x'));  // as much as is accepted
  }
  const std::string answer =
      ask(server.port(), post_head("/mine", 900'000, "Key: good\r\n") + std::string(900'000, 'x'));
  CHECK(answer.starts_with("HTTP/1.1 200 "));
  CHECK(answer.ends_with("/mine 900000"));
}

TEST_CASE("where strangers are admitted, some memory is reserved, and one cannot have all") {
  auto limits = with_keys();
  limits.body_bytes_max = 100'000;
  limits.bodies_bytes_max = 400'000;
  limits.body_bytes_free = 0;
  limits.reserved_percent = 50;
  limits.of_caller_percent = 25;
  std::mutex mutex;
  std::vector<HttpRequest> kept;
  Running server(
      [&](HttpRequest request, const HttpReply& reply) {
        echo_size(request, reply);
        std::lock_guard lock(mutex);
        kept.push_back(std::move(request));
      },
      limits);
  const std::string body(100'000, 'x');
  const auto post = [&](const std::string& path, const std::string& key) {
    return ask(server.port(), post_head(path, body.size(), key) + body);
  };
  CHECK(post("/open", "").starts_with("HTTP/1.1 200 "));
  const std::string second = post("/open", "");
  CHECK(second.starts_with("HTTP/1.1 503 "));
  CHECK(second.find("of this client together have their maximum of 100000") != std::string::npos);
  CHECK(post("/", "Key: good1\r\n").starts_with("HTTP/1.1 200 "));
  CHECK(post("/", "Key: good1\r\n").starts_with("HTTP/1.1 503 "));
  CHECK(post("/", "Key: good22\r\n").starts_with("HTTP/1.1 200 "));
  CHECK(post("/", "Key: good333\r\n").starts_with("HTTP/1.1 200 "));
  const std::string full = post("/", "Key: good4444\r\n");
  CHECK(full.starts_with("HTTP/1.1 503 "));
  CHECK(full.find("together have their maximum of 400000") != std::string::npos);
}

TEST_CASE("a budget counts each holder's bytes, and keeps a reserve for preferred callers") {
  const auto budget = std::make_shared<ByteBudget>(ByteBudget::Limits{
      .bytes_max = 100, .free_bytes = 10, .reserved_bytes = 40, .of_caller_max = 50});
  using Room = ByteHold::Room;
  ByteHold first(budget, {.id = 1});
  CHECK(first.set(10) == Room::kYes);
  CHECK(first.set(60) == Room::kYes);  // 50 counted
  CHECK(first.set(61) == Room::kCallerHasItsPart);
  ByteHold second(budget, {.id = 2});
  CHECK(second.set(20) == Room::kYes);
  CHECK(second.set(21) == Room::kAllTaken);
  CHECK(second.set(10) == Room::kYes);
  {
    ByteHold preferred(budget, {.id = 3, .is_preferred = true});
    CHECK(preferred.set(60) == Room::kYes);
    CHECK(second.set(11) == Room::kAllTaken);
    CHECK(first.set(0) == Room::kYes);
    CHECK(second.set(20) == Room::kYes);
  }
  CHECK(second.set(60) == Room::kYes);
}

TEST_CASE("unread answers share a limit, beyond which no more are given") {
  HttpServer::Limits limits;
  limits.answers_bytes_max = 40 * kMiB;
  limits.of_caller_percent = 100;
  limits.body_timeout = std::chrono::hours(1);
  limits.drain_timeout = std::chrono::milliseconds(1);
  const std::string large(16 * kMiB, 'x');
  Running server(
      [&](const HttpRequest& request, const HttpReply& reply) {
        reply.send({200, "text/plain", request.path == "/large" ? large : "small", {}});
      },
      limits);
  const std::string wanted = "GET /large HTTP/1.1\r\nHost: a\r\n\r\n";
  std::vector<std::unique_ptr<RawClient>> readers;
  for (int i = 0; i < 2; ++i) {
    readers.push_back(std::make_unique<RawClient>(server.port()));
    readers.back()->send(wanted);
    CHECK(readers.back()->read_until("\r\n\r\n").starts_with("HTTP/1.1 200 "));
  }
  RawClient third(server.port());
  third.send(wanted);
  const std::string refused = third.read_reply();
  CHECK(refused.starts_with("HTTP/1.1 503 "));
  CHECK(refused.find("Retry-After: 1\r\n") != std::string::npos);
  CHECK(ask(server.port(), "GET / HTTP/1.1\r\nHost: a\r\n\r\n").ends_with("small"));
  for (auto& reader : readers) CHECK(reader->read_exactly(large.size()).size() == large.size());
  third.send(wanted);
  CHECK(third.read_until("\r\n\r\n").starts_with("HTTP/1.1 200 "));
  CHECK(third.read_exactly(large.size()).size() == large.size());
}

TEST_CASE("many local connections do not block a control request") {
  auto limits = with_keys();
  limits.connections_max = 4;
  limits.connections_reserved = 2;
  Running server(echo_size, limits);
  const std::string control = "GET /control HTTP/1.1\r\nHost: a\r\nKey: good\r\n\r\n";
  std::vector<std::unique_ptr<RawClient>> crowd;
  for (int i = 0; i < 40; ++i) {
    crowd.push_back(std::make_unique<RawClient>(server.port()));
    crowd.back()->send("GET /control HTTP/1.1\r\n");  // unfinished
    const std::string answer = ask(server.port(), control);
    CHECK(answer.starts_with("HTTP/1.1 200 "));
  }
  // The reserve is for control only, with one request per connection.
  RawClient other(server.port());
  other.send("GET /other HTTP/1.1\r\nHost: a\r\nKey: good\r\n\r\n");
  const std::string refused = other.read_to_end();
  CHECK(refused.starts_with("HTTP/1.1 503 "));
  CHECK(refused.find("maximum of 4 connections") != std::string::npos);
  RawClient once(server.port());
  once.send(control);
  CHECK(once.read_to_end().find("Connection: close\r\n") != std::string::npos);
}

TEST_CASE("a handler that throws fails only its own request") {
  HttpServer::Limits limits;
  limits.admit = [](HttpRequest& head) {
    if (head.path == "/admit") throw std::bad_alloc();
    return HttpAdmission{};
  };
  Running server(
      [](const HttpRequest& request, const HttpReply& reply) {
        if (request.path == "/throw") throw std::bad_alloc();
        if (request.path == "/begun") {
          reply.start(200, "text/plain");
          throw std::bad_alloc();
        }
        if (request.path == "/gone") {
          reply.on_disconnect([] { throw std::bad_alloc(); });
          reply.start(200, "text/plain");
          reply.write("one", [] { throw std::bad_alloc(); });
          return;
        }
        echo_size(request, reply);
      },
      limits);
  const auto get = [&](const std::string& path) {
    RawClient client(server.port());
    client.send("GET " + path + " HTTP/1.1\r\nHost: a\r\n\r\n");
    return client.read_to_end();
  };
  RawClient kept(server.port());
  for (int i = 0; i < 2; ++i) {
    CHECK(get("/throw").starts_with("HTTP/1.1 500 "));
    CHECK(get("/admit").starts_with("HTTP/1.1 503 "));
    CHECK(get("/begun").find("0\r\n\r\n") == std::string::npos);
    CHECK(get("/gone").find("0\r\n\r\n") == std::string::npos);
    kept.send("GET /kept HTTP/1.1\r\nHost: a\r\n\r\n");
    CHECK(kept.read_reply().ends_with("/kept 0"));
  }
}

TEST_CASE("an event loop keeps running when its callbacks throw") {
  const auto loop = EventLoop::start();
  std::promise<void> later;
  EventLoop::Timer bad, good;
  const Status thrown = loop->run_and_wait([] { throw std::bad_alloc(); });
  REQUIRE(!thrown.ok());
  CHECK(thrown.error().code == ErrorCode::kExhausted);
  loop->must_run([] { throw std::bad_alloc(); });
  loop->post([] { throw std::bad_alloc(); });
  loop->must_run([&] {
    bad = loop->call_after(std::chrono::milliseconds(0), [] { throw std::bad_alloc(); });
    good = loop->call_after(std::chrono::milliseconds(1), [&] { later.set_value(); });
  });
  CHECK(later.get_future().wait_for(std::chrono::seconds(10)) == std::future_status::ready);
  loop->must_run([&] {
    bad.cancel();
    good.cancel();
  });
}

TEST_CASE("the addresses of one IPv6 network are one caller, and so are this machine's") {
  CHECK(caller_network("192.0.2.7") == "192.0.2.7");
  CHECK(caller_network("::ffff:192.0.2.7") == "192.0.2.7");
  CHECK(caller_network("2001:db8:1:2::1") == "2001:db8:1:2::/64");
  CHECK(caller_network("2001:db8:1:2:a:b:c:d") == "2001:db8:1:2::/64");
  CHECK(caller_network("2001:db8:1:3::1") != caller_network("2001:db8:1:2::1"));
  CHECK(caller_network("fe80::1%lo") == "fe80::/64");
  CHECK(caller_network("127.0.0.1") == caller_network("127.9.9.9"));
  CHECK(caller_network("::1") == caller_network("127.0.0.1"));
  CHECK(caller_network("::ffff:127.0.0.1") == caller_network("127.0.0.1"));
  CHECK(caller_network("") == "");
  CHECK(network_id("a") != network_id("b"));
}

}  // namespace lockstep
