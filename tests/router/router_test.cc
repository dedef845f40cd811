#include "router/router.h"

#include <doctest/doctest.h>

#include <future>
#include <set>

#include "net/raw_client.h"
#include "router/routed.h"
#include "support/colliding_keys.h"

namespace lockstep {
namespace {

constexpr std::chrono::seconds kPatience{30};

HttpServer::Handler saying(const std::string& text) {
  return [text](const HttpRequest&, const HttpReply& reply) {
    reply.send({200, "text/plain", text, {}});
  };
}

std::string prompt(int number) {
  return R"({"model": "m", "prompt": "number )" + std::to_string(number) + R"("})";
}

std::string post_text(const std::string& body, const std::string& target = "/v1/completions") {
  return "POST " + target +
         " HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + body;
}

}  // namespace

TEST_CASE("a request and its answer arrive unchanged") {
  FakeBackend backend({"m"}, [](const HttpRequest& request, const HttpReply& reply) {
    reply.send({404,
                "text/x",
                request.method + " " + request.path + "?" + request.query + " " +
                    std::string(request.header("x-name")) + " " + request.body,
                {{"X-Answer", "yes"}}});
  });
  const Routed routed({&backend});
  const auto answer = call_http({.host = "127.0.0.1",
                                 .port = routed.port(),
                                 .method = "POST",
                                 .target = "/v1/other/a%20b?c=%31",
                                 .headers = {{"X-Name", "some one"}},
                                 .body = "no JSON"});
  REQUIRE(answer.ok());
  CHECK(answer.value().status == 404);
  CHECK(answer.value().header("content-type") == "text/x");
  CHECK(answer.value().header("x-answer") == "yes");
  CHECK(answer.value().body == "POST /v1/other/a b?c=%31 some one no JSON");
  CHECK(routed.post(kAny, "/completions").body.starts_with("POST /completions?"));
}

TEST_CASE("a body that costs too much to read goes to a backend unread") {
  FakeBackend backend({"m"}, [](const HttpRequest& request, const HttpReply& reply) {
    reply.send({200, "text/plain", std::to_string(request.body.size()), {}});
  });
  const Routed routed({&backend});
  std::string many = R"({"model":"none","x":[)";
  for (size_t bytes = 0; bytes <= kParsedBytesMax; bytes += parsed_bytes("0,")) many += "0,";
  many += "0]}";
  std::string flood = object_of(colliding_keys(65'536));
  flood.replace(0, 1, R"({"model":"none",)");
  for (const std::string& body : {many, flood}) {
    const auto answer = routed.post(body, "/v1/completions");
    CHECK(answer.status == 200);  // read, it would be 404: no backend has the model
    CHECK(answer.body == std::to_string(body.size()));
  }
}

TEST_CASE("a conversation stays with its backend, and conversations are spread") {
  FakeBackend first({"m"}, saying("first")), second({"m"}, saying("second"));
  const Routed routed({&first, &second});
  std::set<std::string> seen;
  for (int i = 0; i < 20; ++i) {
    const std::string said = routed.post(prompt(i)).body;
    seen.insert(said);
    for (int k = 0; k < 3; ++k) CHECK(routed.post(prompt(i)).body == said);
  }
  CHECK(seen.size() == 2);
  CHECK(first.requests + second.requests == 80);
  CHECK(routed.counter("answered") == 80);
}

TEST_CASE("only backends that have the model are asked") {
  FakeBackend first({"m", "both"}, saying("first")),
      second({"both", "Org/Other"}, saying("second"));
  const Routed routed({&first, &second});
  for (int i = 0; i < 8; ++i) {
    CHECK(routed.post(prompt(i)).body == "first");
    CHECK(routed.post(R"({"model": "other", "prompt": "x"})").body == "second");
  }
  const HttpAnswer unknown = routed.post(R"({"model": "nobody's", "prompt": "x"})");
  CHECK(unknown.status == 404);
  CHECK(unknown.body.find("model_not_found") != std::string::npos);
  const Json models = parse_json(routed.get("/v1/models").body).value();
  CHECK(find(models, "data")->get_array().size() == 3);
  CHECK(routed.get("/v1/models/org/other").status == 200);
  CHECK(routed.get("/v1/models/none").status == 404);
}

TEST_CASE("clients do not notice a lost backend") {
  FakeBackend first({"m"}, saying("first")), second({"m"}, saying("second"));
  const Routed routed({&first, &second});
  first.end();
  for (int i = 0; i < 20; ++i) CHECK(routed.post(prompt(i)).body == "second");
  routed.wait_for_healthy(1);
  second.end();
  CHECK(routed.post(kAny).status == 503);
  routed.wait_for_healthy(0);
  CHECK(routed.get("/health").status == 503);
}

TEST_CASE("an unhealthy backend gets nothing until it recovers") {
  FakeBackend first({"m"}, saying("first")), second({"m"}, saying("second"));
  first.health = 503;
  const Routed routed({&first, &second});
  for (int i = 0; i < 10; ++i) CHECK(routed.post(prompt(i)).body == "second");
  first.health = 200;
  second.health = 503;
  Routed::wait([&] { return routed.post(kAny).body == "first"; });
}

TEST_CASE("an overloaded backend makes another one answer; the last one's answer counts") {
  const auto busy = [](const HttpRequest&, const HttpReply& reply) {
    reply.send({429, "application/json", "busy", {{"Retry-After", "7"}}});
  };
  FakeBackend first({"m"}, busy), second({"m"}, saying("second"));
  {
    const Routed routed({&first, &second});
    for (int i = 0; i < 10; ++i) CHECK(routed.post(prompt(i)).body == "second");
  }
  const Routed routed({&first});
  const HttpAnswer answer = routed.post(kAny);
  CHECK(answer.status == 429);
  CHECK(answer.body == "busy");
  CHECK(answer.header("retry-after") == "7");
}

TEST_CASE("a stream arrives event by event") {
  std::promise<HttpReply> replies;
  FakeBackend backend({"m"}, [&](const HttpRequest&, const HttpReply& reply) {
    reply.start(200, "text/event-stream; charset=utf-8");
    reply.write("data: 1\n\ndata: ");
    replies.set_value(reply);
  });
  const Routed routed({&backend});
  RawClient client(routed.port());
  REQUIRE(client.send(post_text(R"({"model": "m", "stream": true, "prompt": "a"})")));
  const std::string head = client.read_until("data: 1\n\n");
  CHECK(head.find("text/event-stream; charset=utf-8") != std::string::npos);
  const HttpReply reply = replies.get_future().get();
  reply.write("2\n\n");
  CHECK(client.read_until("data: 2\n\n").ends_with("data: 2\n\n"));
  reply.write("data: [DONE]\n\n");
  reply.finish();
  CHECK(client.read_until("\r\n0\r\n\r\n").find("[DONE]") != std::string::npos);
}

TEST_CASE("a backend that dies mid-stream ends it with an error event") {
  std::promise<HttpReply> replies;
  FakeBackend backend({"m"}, [&](const HttpRequest&, const HttpReply& reply) {
    reply.start(200, "text/event-stream");
    reply.write("data: 1\n\ndata: half");
    replies.set_value(reply);
  });
  const Routed routed({&backend});
  RawClient client(routed.port());
  REQUIRE(client.send(post_text(R"({"model": "m", "stream": true, "prompt": "a"})")));
  client.read_until("data: 1\n\n");
  { const HttpReply dropped = replies.get_future().get(); }
  const std::string rest = client.read_until("\r\n0\r\n\r\n");
  CHECK(rest.find("data: {\"error\":") != std::string::npos);
  CHECK(rest.find("backend_lost") != std::string::npos);
  CHECK(rest.find("half") == std::string::npos);
  CHECK(rest.ends_with("}\n\n\r\n0\r\n\r\n"));
  CHECK(routed.counter("broken") == 1);
}

TEST_CASE("a non-streamed answer that breaks off is requested from another backend") {
  std::atomic<int> count{0};
  const auto once = [&](const HttpRequest&, const HttpReply& reply) {
    if (++count > 1) return reply.send({200, "text/plain", "whole", {}});
    reply.start(200, "text/plain");
    reply.write("half");
  };
  FakeBackend first({"m"}, once), second({"m"}, once);
  const Routed routed({&first, &second});
  CHECK(routed.post(kAny).body == "whole");
  CHECK(routed.counter("retried") == 1);
}

TEST_CASE("a backend that does not begin to answer in time is given up") {
  std::atomic<int> count{0};
  std::promise<HttpReply> kept;
  const auto stalls_once = [&](const HttpRequest&, const HttpReply& reply) {
    if (++count > 1) return reply.send({200, "text/plain", "late", {}});
    kept.set_value(reply);
  };
  FakeBackend first({"m"}, stalls_once), second({"m"}, stalls_once);
  RouterOptions options;
  options.relay.stream_first_byte_timeout = std::chrono::milliseconds(1000);
  const Routed routed({&first, &second}, options);
  CHECK(routed.post(R"({"model": "m", "stream": true, "prompt": "a"})").body == "late");
}

TEST_CASE("a client that leaves cancels its request") {
  std::promise<void> gone;
  FakeBackend backend({"m"}, [&](const HttpRequest&, const HttpReply& reply) {
    reply.on_disconnect([&gone, reply] { gone.set_value(); });
    reply.start(200, "text/event-stream");
    reply.write("data: 1\n\n");
  });
  const Routed routed({&backend});
  {
    RawClient client(routed.port());
    REQUIRE(client.send(post_text(kAny)));
    client.read_until("data: 1\n\n");
  }
  CHECK(gone.get_future().wait_for(kPatience) == std::future_status::ready);
  Routed::wait([&] { return routed.counter("running") == 0; });
  CHECK(routed.counter("cancelled") == 1);
}

// Without back-pressure the router would have more than unsent_bytes_max to send, and drop the
// client.
TEST_CASE("a slow client slows down its backend and loses nothing") {
  std::string body;
  while (body.size() < size_t{4} << 20) body += "data: " + std::string(1000, 'x') + "\n\n";
  for (const char* type : {"text/plain", "text/event-stream"}) {
    CAPTURE(type);
    FakeBackend backend({"m"}, [&](const HttpRequest&, const HttpReply& reply) {
      reply.send({200, type, body, {}});
    });
    RouterOptions options;
    options.limits.unsent_bytes_max = 128 << 10;
    options.relay.kept_answer_bytes_max = 64 << 10;
    const Routed routed({&backend}, options);
    RawClient client(routed.port(), 64 << 10);
    REQUIRE(client.send("POST /v1/x HTTP/1.0\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}"));
    const std::string answer = client.read_to_end();
    CHECK(answer.size() - answer.find("\r\n\r\n") - 4 == body.size());
  }
}

TEST_CASE("the router refuses requests beyond its maximum") {
  std::promise<HttpReply> kept;
  FakeBackend backend({"m"}, [&](const HttpRequest&, const HttpReply& reply) {
    reply.start(200, "text/event-stream");
    reply.write("data: 1\n\n");
    kept.set_value(reply);
  });
  RouterOptions options;
  options.requests_max = 1;
  const Routed routed({&backend}, options);
  RawClient client(routed.port());
  REQUIRE(client.send(post_text(kAny)));
  client.read_until("data: 1\n\n");
  const HttpAnswer refused = routed.post(kAny);
  CHECK(refused.status == 429);
  CHECK(refused.body.find("queue_full") != std::string::npos);
  CHECK(routed.counter("refused") == 1);
}

TEST_CASE("unknown routes are refused, and the router's own exist") {
  FakeBackend backend({"m"}, saying("x"));
  const Routed routed({&backend});
  CHECK(routed.get("/health").status == 200);
  CHECK(routed.get("/nothing").status == 404);
  CHECK(routed.post("{}", "/cluster/load").status == 405);
  routed.post(kAny);
  const std::string metrics = routed.get("/metrics").body;
  CHECK(metrics.find("\nlockstep_router_answered_total 1\n") != std::string::npos);
  CHECK(metrics.find("lockstep_router_backend_up{backend=\"http://127.0.0.1:") !=
        std::string::npos);
}

TEST_CASE("a router without backends, or with one twice, does not start") {
  RouterOptions options;
  options.port = 0;
  const auto sentence = [&] {
    const auto router = Router::start(options);
    return router.ok() ? "it started" : router.error().message;
  };
  CHECK(sentence() == "a router has 1 to 256 backends, not 0");
  options.backends = {{"a", 1}, {"a", 1}};
  CHECK(sentence() == "the backend a:1 is named twice");
}

}  // namespace lockstep
