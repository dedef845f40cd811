#include "net/http/http_server.h"

#include <doctest/doctest.h>

#include <future>
#include <mutex>
#include <thread>
#include <vector>

#include "net/raw_client.h"
#include "net/running.h"
#include "support/text.h"

namespace lockstep {
namespace {

using std::chrono::milliseconds;
constexpr std::chrono::seconds kBound{10};  // a test that waits longer fails

void echo(const HttpRequest& request, const HttpReply& reply) {
  reply.send({200, "text/plain", request.method + " " + request.path + " " + request.body, {}});
}

std::string get(std::string_view path, std::string_view more = "") {
  return "GET " + std::string(path) + " HTTP/1.1\r\nHost: a\r\n" + std::string(more) + "\r\n";
}

std::string post(std::string_view path, std::string_view body) {
  return "POST " + std::string(path) +
         " HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
         std::string(body);
}

}  // namespace

TEST_CASE("one connection serves one request after another") {
  Running server(echo);
  RawClient client(server.port());
  for (int i = 0; i < 3; ++i) {
    client.send(post("/p", "body " + std::to_string(i)));
    const std::string reply = client.read_reply();
    CHECK(contains(reply, "HTTP/1.1 200 OK\r\n"));
    CHECK(contains(reply, "\r\n\r\nPOST /p body " + std::to_string(i)));
  }
}

TEST_CASE("pipelined requests are answered in order, even from other threads") {
  std::vector<std::thread> threads;
  {
    Running server([&](const HttpRequest& request, const HttpReply& reply) {
      threads.emplace_back([request, reply] { echo(request, reply); });
    });
    RawClient client(server.port());
    client.send(get("/1") + post("/2", "two") + get("/3"));
    CHECK(contains(client.read_reply(), "GET /1 "));
    CHECK(contains(client.read_reply(), "POST /2 two"));
    CHECK(contains(client.read_reply(), "GET /3 "));
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_CASE("a streamed reply arrives piece by piece") {
  std::promise<HttpReply> replies;
  Running server([&](const HttpRequest&, const HttpReply& reply) {
    reply.start(200, "text/event-stream", {{"x-note", "line\r\nbreak"}});
    replies.set_value(reply);
  });
  RawClient client(server.port());
  client.send(get("/"));
  const std::string head = client.read_until("\r\n\r\n");
  CHECK(contains(head, "Transfer-Encoding: chunked\r\n"));
  CHECK(contains(head, "x-note: line  break\r\n"));
  const HttpReply reply = replies.get_future().get();
  reply.write("first");
  CHECK(client.read_exactly(10) == "5\r\nfirst\r\n");
  reply.write("");
  reply.write("second piece....");
  CHECK(client.read_exactly(22) == "10\r\nsecond piece....\r\n");
  reply.finish();
  CHECK(client.read_exactly(5) == "0\r\n\r\n");
}

TEST_CASE("an HTTP/1.0 client gets a stream that ends with the connection") {
  Running server([](const HttpRequest&, const HttpReply& reply) {
    reply.start(200, "text/plain");
    reply.write("one ");
    reply.write("two");
    reply.finish();
  });
  RawClient client(server.port());
  client.send("GET / HTTP/1.0\r\n\r\n");
  const std::string all = client.read_to_end();
  CHECK(!contains(all, "Transfer-Encoding"));
  CHECK(contains(all, "\r\n\r\none two"));
}

TEST_CASE("a body announced with Expect: 100-continue is requested") {
  Running server(echo);
  RawClient client(server.port());
  client.send("POST /e HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n");
  CHECK(client.read_until("\r\n\r\n") == "HTTP/1.1 100 Continue\r\n\r\n");
  client.send("body");
  CHECK(contains(client.read_reply(), "POST /e body"));
}

TEST_CASE("a chunked request body is assembled") {
  Running server(echo);
  RawClient client(server.port());
  client.send("POST /c HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nab");
  client.send("cd\r\n3\r\nefg\r\n0\r\n\r\n");
  CHECK(contains(client.read_reply(), "POST /c abcdefg"));
}

TEST_CASE("HEAD is answered as GET without a body") {
  Running server(echo);
  RawClient client(server.port());
  client.send("HEAD /h HTTP/1.1\r\nHost: a\r\n\r\n" + get("/next"));
  CHECK(contains(client.read_until("\r\n\r\n"), "Content-Length: 7\r\n"));
  CHECK(contains(client.read_reply(), "GET /next "));
}

TEST_CASE("a client that disconnects during its reply is reported once") {
  for (const bool is_streaming : {false, true}) {
    for (const bool is_reset : {false, true}) {
      std::promise<void> gone;  // a second set_value would throw
      std::promise<HttpReply> replies;
      Running server([&](const HttpRequest&, const HttpReply& reply) {
        if (is_streaming) reply.start(200, "text/plain");
        reply.on_disconnect([&] { gone.set_value(); });
        replies.set_value(reply);
      });
      RawClient client(server.port());
      client.send(get("/"));
      if (is_streaming) client.read_until("\r\n\r\n");
      const HttpReply reply = replies.get_future().get();
      CHECK(reply.is_open());
      if (is_reset) {
        client.reset();
      } else {
        client.close();
      }
      REQUIRE(gone.get_future().wait_for(kBound) == std::future_status::ready);
      CHECK(!reply.is_open());
      std::promise<void> late;
      reply.on_disconnect([&] { late.set_value(); });
      CHECK(late.get_future().wait_for(kBound) == std::future_status::ready);
      reply.finish();
    }
  }
}

TEST_CASE("a complete reply is not a disconnect") {
  bool was_called = false;
  {
    Running server([&](const HttpRequest& request, const HttpReply& reply) {
      reply.on_disconnect([&] { was_called = true; });
      echo(request, reply);
    });
    RawClient client(server.port());
    client.send(get("/"));
    client.end_sending();
    CHECK(contains(client.read_to_end(), "GET / "));
  }
  CHECK(!was_called);
}

TEST_CASE("a reader that is too slow is dropped") {
  std::promise<HttpReply> replies;
  HttpServer::Limits limits;
  limits.unsent_bytes_max = 1 << 20;
  std::promise<void> gone;
  Running server(
      [&](const HttpRequest&, const HttpReply& reply) {
        reply.on_disconnect([&] { gone.set_value(); });
        reply.start(200, "text/plain");
        replies.set_value(reply);
      },
      limits);
  RawClient client(server.port(), 4096);
  client.send(get("/"));
  const HttpReply reply = replies.get_future().get();
  const std::string piece(64 << 10, 'x');
  size_t count = 0;
  while (reply.is_open() && ++count < 4096) reply.write(piece);
  CHECK(count < 4096);
  CHECK(gone.get_future().wait_for(kBound) == std::future_status::ready);
}

TEST_CASE("a reader that stops is dropped after the time-out") {
  HttpServer::Limits limits;
  limits.body_timeout = milliseconds(50);
  std::promise<void> gone;
  Running server(
      [&](const HttpRequest&, const HttpReply& reply) {
        reply.send({200, "text/plain", std::string(32 << 20, 'x'), {}});
        gone.set_value();
      },
      limits);
  RawClient client(server.port(), 4096);
  client.send(get("/"));
  gone.get_future().wait();
  server.stop();  // would take drain_timeout if the connection still existed
  CHECK(client.read_to_end().size() < (32u << 20));
}

TEST_CASE("requests over a limit get its status and a body in the given shape") {
  HttpServer::Limits limits;
  limits.header_bytes_max = 16 << 10;
  limits.body_bytes_max = 1000;
  Running server(echo, limits);
  const auto status_of = [&](const std::string& bytes) {
    RawClient client(server.port());
    client.send(bytes);
    const std::string reply = client.read_to_end();
    CHECK(contains(reply, "Connection: close\r\n"));
    const std::string status = reply.substr(std::string_view("HTTP/1.1 ").size(), 3);
    CHECK(contains(reply, "\r\n\r\n" + status + ":"));
    return status;
  };
  CHECK(status_of(post("/", std::string(1001, 'x'))) == "413");
  RawClient large(server.port());
  large.send(post("/a%20b?c", std::string(1001, 'x')));
  CHECK(contains(large.read_to_end(), "\r\n\r\n413:/a b:"));
  CHECK(status_of("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3e9\r\n" +
                  std::string(1001, 'x')) == "413");
  CHECK(status_of(get("/", "x: " + std::string(17 << 10, 'x') + "\r\n")) == "431");
  CHECK(status_of(get("/" + std::string(9 << 10, 'x'))) == "414");
  CHECK(status_of("nonsense\r\n\r\n") == "400");
  CHECK(status_of("GET / HTTP/2.0\r\nHost: a\r\n\r\n") == "400");
  CHECK(status_of("GET / HTTP/1.1\r\n\r\n") == "400");
  CHECK(status_of("GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n") == "400");
  CHECK(status_of("GET /%00 HTTP/1.1\r\nHost: a\r\n\r\n") == "400");
  CHECK(status_of("GET /%ff HTTP/1.1\r\nHost: a\r\n\r\n") == "400");
  CHECK(status_of(get("/", "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n")) == "400");
  CHECK(status_of(get("/", "Transfer-Encoding: gzip\r\n")) == "400");
  CHECK(status_of(get("/", "Expect: a miracle\r\n")) == "417");
  RawClient client(server.port());
  client.send(post("/", std::string(1000, 'x')));
  CHECK(contains(client.read_reply(), "200 OK"));
}

TEST_CASE("bodies of several requests share a limit, beyond each one's free allowance") {
  HttpServer::Limits limits;
  limits.body_bytes_max = 100'000;
  limits.bodies_bytes_max = 150'000;
  limits.body_bytes_free = 1'000;
  limits.of_caller_percent = 100;
  std::mutex mutex;
  std::vector<HttpRequest> kept;  // held by the handler
  Running server(
      [&](HttpRequest request, const HttpReply& reply) {
        if (request.path != "/keep") return echo(request, reply);
        reply.send({200, "text/plain", "kept", {}});
        std::lock_guard lock(mutex);
        kept.push_back(std::move(request));
      },
      limits);
  const auto ask = [&](const std::string& bytes) {
    RawClient client(server.port());
    client.send(bytes);
    return client.read_reply();
  };
  const std::string large(100'000, 'x');
  CHECK(contains(ask(post("/", large)), "200 OK"));
  CHECK(contains(ask(post("/", large)), "200 OK"));  // the first has ended
  CHECK(contains(ask(post("/keep", large)), "200 OK"));
  const std::string refused = ask(post("/a", large));
  CHECK(contains(refused, "HTTP/1.1 503 "));
  CHECK(contains(refused, "Retry-After: 1\r\n"));
  CHECK(contains(refused,
                 "503:/a:the bodies of all requests together have their maximum of 150000 "
                 "bytes, try again later"));
  CHECK(contains(ask("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n186a0\r\n" +
                     large + "\r\n0\r\n\r\n"),
                 "HTTP/1.1 503 "));
  CHECK(contains(ask(post("/keep", std::string(51'000, 'x'))), "200 OK"));  // 149'000 are held
  CHECK(contains(ask(post("/", std::string(2'000, 'x'))), "200 OK"));       // 150'000
  CHECK(contains(ask(post("/", std::string(2'001, 'x'))), "HTTP/1.1 503 "));
  CHECK(contains(ask(post("/keep", std::string(1'000, 'x'))), "200 OK"));
  // A body that is still arriving takes room, and frees it when its client disconnects.
  const auto becomes_full = [&](bool wanted) {
    const auto deadline = std::chrono::steady_clock::now() + kBound;
    bool is_full = !wanted;
    while (is_full != wanted && std::chrono::steady_clock::now() < deadline) {
      is_full = contains(ask(post("/", std::string(1'002, 'x'))), " 503 ");
    }
    return is_full;
  };
  {
    RawClient slow(server.port());
    slow.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n" +
              std::string(1'999, 'x'));
    CHECK(becomes_full(true));
  }
  CHECK(!becomes_full(false));
  std::lock_guard lock(mutex);
  kept.clear();
  CHECK(contains(ask(post("/", large)), "200 OK"));
}

TEST_CASE("a header or a body that does not arrive is 408, an idle connection is closed") {
  HttpServer::Limits limits;
  limits.header_timeout = milliseconds(40);
  limits.body_timeout = milliseconds(40);
  Running server(echo, limits);
  RawClient header(server.port());
  header.send("GET / HTTP/1.1\r\n");
  CHECK(contains(header.read_to_end(), "HTTP/1.1 408 "));
  RawClient body(server.port());
  body.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n123");
  CHECK(contains(body.read_to_end(), "HTTP/1.1 408 "));
  RawClient idle(server.port());
  CHECK(idle.read_to_end() == "");
  RawClient used(server.port());
  used.send(get("/"));
  CHECK(contains(used.read_reply(), "200 OK"));
  CHECK(used.is_ended());
}

TEST_CASE("one connection too many is answered with 503") {
  HttpServer::Limits limits;
  limits.connections_max = 2;
  limits.connections_reserved = 0;
  Running server(echo, limits);
  RawClient first(server.port());
  RawClient second(server.port());
  first.send(get("/"));
  second.send(get("/"));
  CHECK(contains(first.read_reply(), "200"));
  CHECK(contains(second.read_reply(), "200"));
  RawClient third(server.port());
  const std::string refusal = third.read_to_end();
  CHECK(contains(refusal, "HTTP/1.1 503 "));
  CHECK(contains(refusal, "Retry-After: 1\r\n"));
}

TEST_CASE("a reply that is never sent is 500, a stream that is never ended is cut") {
  Running server([](const HttpRequest& request, const HttpReply& reply) {
    if (request.path == "/stream") reply.start(200, "text/plain");
  });
  RawClient dropped(server.port());
  dropped.send(get("/"));
  CHECK(contains(dropped.read_to_end(), "HTTP/1.1 500 "));
  RawClient cut(server.port());
  cut.send(get("/stream"));
  CHECK(!contains(cut.read_to_end(), "0\r\n\r\n"));
}

TEST_CASE("stop lets a running reply finish and closes idle connections") {
  std::promise<HttpReply> replies;
  Running server([&](const HttpRequest&, const HttpReply& reply) {
    reply.start(200, "text/plain");
    replies.set_value(reply);
  });
  RawClient idle(server.port());
  RawClient busy(server.port());
  busy.send(get("/"));
  const HttpReply reply = replies.get_future().get();
  server.server().stop();
  CHECK(idle.is_ended());
  reply.write("the end");
  reply.finish();
  CHECK(contains(busy.read_until("0\r\n\r\n"), "the end\r\n0\r\n\r\n"));
  busy.close();
  server.stop();
  CHECK(!RawClient(server.port()).is_connected());
}

TEST_CASE("stop ends a reply that does not end itself, and notifies its owner") {
  HttpServer::Limits limits;
  limits.drain_timeout = milliseconds(30);
  std::promise<HttpReply> replies;
  std::promise<void> gone;
  Running server(
      [&](const HttpRequest&, const HttpReply& reply) {
        reply.on_disconnect([&] { gone.set_value(); });
        replies.set_value(reply);
      },
      limits);
  RawClient client(server.port());
  client.send(get("/"));
  const HttpReply reply = replies.get_future().get();
  server.stop();
  CHECK(gone.get_future().wait_for(kBound) == std::future_status::ready);
  CHECK(client.is_ended());
  reply.send({});
}

TEST_CASE("a draining server refuses requests and ends once running ones are answered") {
  std::promise<HttpReply> replies;
  Running server(
      [&](const HttpRequest&, const HttpReply& reply) { replies.set_value(reply); });  // once
  RawClient kept(server.port());
  RawClient busy(server.port());
  busy.send(get("/"));
  const HttpReply reply = replies.get_future().get();
  reply.start(200, "text/plain");
  server.server().drain(kBound);
  server.server().drain(milliseconds(1));  // the first call counts
  RawClient late(server.port());
  for (RawClient* client : {&late, &kept}) {
    client->send(get("/"));
    const std::string refusal = client->read_to_end();
    CHECK(contains(refusal, "HTTP/1.1 503 "));
    CHECK(contains(refusal, "Retry-After: 1\r\n"));
    CHECK(contains(refusal, "Connection: close\r\n"));
    CHECK(contains(refusal, "503:/:this server is about to stop"));
    client->close();
  }
  reply.write("the end");
  reply.finish();
  CHECK(contains(busy.read_until("0\r\n\r\n"), "the end\r\n0\r\n\r\n"));
  busy.close();
  server.wait();
  CHECK(!RawClient(server.port()).is_connected());
}

TEST_CASE("a draining server without requests ends at once") {
  Running server(echo);
  RawClient idle(server.port());
  idle.send(get("/"));
  CHECK(contains(idle.read_reply(), "200 OK"));
  server.server().drain(std::chrono::hours(1));
  server.wait();
  CHECK(idle.is_ended());
}

TEST_CASE("running requests end at the drain limit, or when the server is stopped") {
  for (const bool is_told_now : {false, true}) {
    std::promise<HttpReply> replies;
    std::promise<void> gone;
    Running server([&](const HttpRequest&, const HttpReply& reply) {
      reply.on_disconnect([&] { gone.set_value(); });
      replies.set_value(reply);
    });
    RawClient client(server.port());
    client.send(get("/"));
    const HttpReply reply = replies.get_future().get();
    server.server().drain(is_told_now ? milliseconds(3'600'000) : milliseconds(30));
    if (is_told_now) server.server().stop_now();
    server.wait();
    CHECK(gone.get_future().wait_for(kBound) == std::future_status::ready);
    CHECK(client.is_ended());
    reply.send({});
  }
}

TEST_CASE("a request is marked as coming from this machine") {
  Running server([](const HttpRequest& request, const HttpReply& reply) {
    reply.send({200, "text/plain", request.is_from_this_machine ? "near" : "far", {}});
  });
  RawClient client(server.port());
  client.send(get("/"));
  CHECK(contains(client.read_reply(), "near"));
}

TEST_CASE("a reply may outlive its server") {
  std::promise<HttpReply> replies;
  auto server = std::make_unique<Running>(
      [&](const HttpRequest&, const HttpReply& reply) { replies.set_value(reply); },
      HttpServer::Limits{.drain_timeout = milliseconds(1)});
  RawClient client(server->port());
  client.send(get("/"));
  const HttpReply reply = replies.get_future().get();
  server.reset();
  reply.start(200, "text/plain");
  reply.write("late");
  reply.finish();
  CHECK(!reply.is_open());
}

TEST_CASE("a port in use is an error that names it") {
  Running server(echo);
  auto second = HttpServer::listen("localhost", server.port(), {}, echo);
  REQUIRE(!second.ok());
  CHECK(contains(second.error().message, "port " + std::to_string(server.port())));
  CHECK(contains(second.error().message, "already in use"));
  auto unknown = HttpServer::listen("not a host", 0, {}, echo);
  REQUIRE(!unknown.ok());
  CHECK(contains(unknown.error().message, "not a host"));
}

TEST_CASE("pieces from several threads arrive whole and in each thread's order") {
  constexpr int kThreads = 4;
  constexpr int kPieces = 200;
  std::promise<HttpReply> replies;
  Running server([&](const HttpRequest&, const HttpReply& reply) {
    reply.start(200, "text/plain");
    replies.set_value(reply);
  });
  RawClient client(server.port());
  client.send(get("/"));
  const HttpReply reply = replies.get_future().get();
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([reply, t] {
      for (int i = 0; i < kPieces; ++i) {
        reply.write("<" + std::to_string(t) + ":" + std::to_string(i) + ">");
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  reply.finish();
  const std::string all = client.read_until("0\r\n\r\n");
  for (int t = 0; t < kThreads; ++t) {
    size_t from = 0;
    for (int i = 0; i < kPieces; ++i) {
      from = all.find("<" + std::to_string(t) + ":" + std::to_string(i) + ">", from);
      REQUIRE(from != std::string::npos);
    }
  }
}

}  // namespace lockstep
