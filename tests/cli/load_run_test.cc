#include "cli/bench/load_run.h"

#include <doctest/doctest.h>

#include <atomic>
#include <mutex>
#include <thread>

#include "cli/bench/bench_serve.h"
#include "json/json.h"
#include "net/event_loop.h"
#include "net/http/http_server.h"

namespace lockstep {
namespace {

// A fake server. Handlers run on its thread; `later` runs delayed work.
class FakeServer {
 public:
  using Answer = std::function<void(int number, const HttpReply& reply)>;

  explicit FakeServer(Answer answer) {
    auto handler = [this, answer = std::move(answer)](HttpRequest request, HttpReply reply) {
      {
        const std::lock_guard lock(mutex_);
        requests_.push_back(std::move(request));
      }
      answer(count_++, reply);
    };
    server_ = std::move(HttpServer::listen("127.0.0.1", 0, {}, std::move(handler)).value());
    thread_ = std::thread([this] { server_->run(); });
  }
  ~FakeServer() {
    server_->stop_now();
    thread_.join();
    later_->must_run([this] { timers_.clear(); });
  }

  LoadTarget target() const { return {.address = {"127.0.0.1", server_->port()}, .model = "m"}; }
  std::vector<HttpRequest> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }
  void later(std::chrono::milliseconds delay, std::function<void()> what) {
    later_->post([this, delay, what = std::move(what)]() mutable {
      timers_.push_back(later_->call_after(delay, std::move(what)));
    });
  }

 private:
  mutable std::mutex mutex_;
  std::vector<HttpRequest> requests_;
  int count_ = 0;  // used on the server's thread
  std::unique_ptr<EventLoop> later_ = EventLoop::start();
  std::vector<EventLoop::Timer> timers_;
  std::unique_ptr<HttpServer> server_;
  std::thread thread_;
};

constexpr const char* kText = "data: {\"choices\":[{\"text\":\"a\"}]}\n\n";
constexpr const char* kUsage =
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":3}}\n\n";
constexpr const char* kDone = "data: [DONE]\n\n";

void answer_whole(const HttpReply& reply) {
  reply.start(200, "text/event-stream");
  for (const char* event : {kText, kText, kText, kUsage, kDone}) reply.write(event);
  reply.finish();
}

LoadFigures run(const FakeServer& server, const LoadOptions& options) {
  return run_load(server.target(), options, nullptr);
}

TEST_CASE("every request is sent once, and the server's counts are added up") {
  FakeServer server([](int, const HttpReply& reply) { answer_whole(reply); });
  const LoadOptions options{
      .shape = {.prompt_tokens = {4, 4}, .new_tokens = {3, 3}}, .concurrency = 3, .requests = 20};
  const LoadFigures figures = run(server, options);
  CHECK(figures.sent == 20);
  CHECK(figures.completed == 20);
  CHECK(figures.good == 20);
  CHECK(figures.prompt_tokens == 140);
  CHECK(figures.new_tokens == 60);
  CHECK_FALSE(figures.are_tokens_counted_here);
  CHECK(figures.running_max == 3);
  CHECK(figures.errors.empty());
  CHECK(figures.first_token.count() == 20);
  CHECK(figures.inter_token.count() == 40);
  const auto requests = server.requests();
  REQUIRE(requests.size() == 20);
  for (const HttpRequest& request : requests) {
    CHECK(request.path == "/v1/completions");
    const auto body = parse_json(request.body);
    REQUIRE(body.ok());
    CHECK(find(body.value(), "prompt")->get_array().size() == 4);
    CHECK(get_int(body.value(), "max_tokens").value() == 3);
    CHECK(get_string(body.value(), "model").value() == "m");
    CHECK(get_bool(body.value(), "stream").value() == true);
  }
}

TEST_CASE("a chat carries its prompt as text, and the key is sent") {
  FakeServer server([](int, const HttpReply& reply) { answer_whole(reply); });
  LoadTarget target = server.target();
  target.api = LoadApi::kChat;
  target.api_key = "secret";
  target.base = "/other/v1";
  const LoadOptions options{.concurrency = 1, .requests = 1};
  CHECK(run_load(target, options, nullptr).completed == 1);
  const auto requests = server.requests();
  REQUIRE(requests.size() == 1);
  CHECK(requests[0].path == "/other/v1/chat/completions");
  CHECK(requests[0].header("authorization") == "Bearer secret");
  const auto body = parse_json(requests[0].body);
  REQUIRE(body.ok());
  const Json& message = find(body.value(), "messages")->get_array().at(0);
  CHECK(get_string(message, "content").value()->size() > 128);
}

TEST_CASE("a server that stalls is charged for all requests that were due meanwhile") {
  // One connection at a time, and the first answer takes 300 ms; all others are immediate.
  FakeServer* self = nullptr;
  FakeServer server([&self](int number, const HttpReply& reply) {
    if (number > 0) return answer_whole(reply);
    self->later(std::chrono::milliseconds(300), [reply] { answer_whole(reply); });
  });
  self = &server;
  const LoadOptions options{
      .shape = {.rate = 200}, .concurrency = 1, .requests = 40};  // within some 0.2 s
  const LoadFigures figures = run(server, options);
  CHECK(figures.completed == 40);
  CHECK(figures.running_max == 1);
  // Counted from when they were sent, all but one would look fast.
  CHECK(figures.first_token.quantile(0.5) > 0.1);
  CHECK(figures.whole.quantile(0.5) > 0.1);
  CHECK(figures.lateness.quantile(0.5) > 0.1);
  CHECK(figures.first_token.max() >= 0.3);
}

TEST_CASE("without a concurrency limit a load with a rate never waits") {
  FakeServer* self = nullptr;
  FakeServer server([&self](int, const HttpReply& reply) {
    self->later(std::chrono::milliseconds(400), [reply] { answer_whole(reply); });
  });
  self = &server;
  const LoadFigures figures = run(server, {.shape = {.rate = 400}, .requests = 40});
  CHECK(figures.completed == 40);
  CHECK(figures.running_max > 20);
  CHECK(figures.whole.max() < 2);
}

TEST_CASE("requests begin within the duration, and all are awaited") {
  FakeServer server([](int, const HttpReply& reply) { answer_whole(reply); });
  const LoadFigures figures =
      run(server, {.shape = {.rate = 100}, .concurrency = 4, .duration_s = 0.3});
  CHECK(figures.sent > 5);
  CHECK(figures.sent < 100);
  CHECK(figures.completed == figures.sent);
}

TEST_CASE("each kind of failure is counted by name, with an example") {
  const auto failing = [](std::function<void(const HttpReply&)> answer) {
    FakeServer server([&](int, const HttpReply& reply) { answer(reply); });
    const LoadFigures figures = run(server, {.concurrency = 2, .requests = 3});
    CHECK(figures.completed == 0);
    REQUIRE(figures.errors.size() == 1);
    const auto& [kind, errors] = *figures.errors.begin();
    CHECK(errors.count == 3);
    return kind + ": " + errors.example;
  };
  CHECK(failing([](const HttpReply& reply) {
          reply.send({.status = 429, .body = R"({"error":{"message":"the queue is full"}})"});
        }) == "429: the queue is full");
  CHECK(failing([](const HttpReply& reply) { reply.send({.status = 502, .body = "<html>"}); }) ==
        "502: status 502");
  CHECK(failing([](const HttpReply& reply) {
          reply.send({.body = "{}"});
        }).starts_with("no stream: "));
  CHECK(failing([](const HttpReply& reply) {
          reply.start(200, "text/event-stream");
          reply.write("data: {\"error\":{\"message\":\"worker lost\"}}\n\n");
          reply.finish();
        }) == "error in the stream: worker lost");
  CHECK(failing([](const HttpReply& reply) {
          reply.start(200, "text/event-stream");
          reply.write(kText);
          reply.finish();
        }).starts_with("broken off: "));
  CHECK(failing([](const HttpReply& reply) {
          reply.start(200, "text/event-stream");
          reply.write("data: no JSON\n\n");
          reply.finish();
        }).starts_with("no stream: "));
}

TEST_CASE("a silent server is given up, and a missing one is reported") {
  std::vector<HttpReply> kept;  // the server's thread
  FakeServer server([&kept](int, const HttpReply& reply) { kept.push_back(reply); });
  const LoadFigures silent =
      run(server, {.concurrency = 2, .requests = 2, .timeout = std::chrono::milliseconds(100)});
  REQUIRE(silent.errors.contains("timed out"));
  CHECK(silent.errors.at("timed out").count == 2);
  LoadTarget nobody;
  {
    FakeServer gone([](int, const HttpReply&) {});
    nobody = gone.target();
  }
  const LoadFigures none = run_load(nobody, {.concurrency = 1, .requests = 1}, nullptr);
  CHECK(none.errors.contains("not reached"));
}

TEST_CASE("good requests are those within every limit") {
  FakeServer* self = nullptr;
  FakeServer server([&self](int number, const HttpReply& reply) {
    if (number % 2 == 0) return answer_whole(reply);
    self->later(std::chrono::milliseconds(500), [reply] { answer_whole(reply); });
  });
  self = &server;
  LoadOptions options{.concurrency = 1, .requests = 6};
  options.limits.first_token_ms = 400;
  const LoadFigures figures = run(server, options);
  CHECK(figures.completed == 6);
  CHECK(figures.good == 3);
}

TEST_CASE("a server that does not count tokens has its events counted") {
  FakeServer server([](int, const HttpReply& reply) {
    reply.start(200, "text/event-stream");
    for (const char* event : {kText, kText, kDone}) reply.write(event);
    reply.finish();
  });
  const LoadOptions options{.shape = {.prompt_tokens = {9, 9}}, .concurrency = 1, .requests = 2};
  const LoadFigures figures = run(server, options);
  CHECK(figures.are_tokens_counted_here);
  CHECK(figures.new_tokens == 4);
  CHECK(figures.prompt_tokens == 18);
  const JsonObject json = bench_serve_json(server.target(), options, figures);
  CHECK(json.at("tokens_counted_by").as_string() == "events");
}

TEST_CASE("an address without the path of the API gets it") {
  const auto bare = parse_load_target("http://10.0.0.2:9000");
  REQUIRE(bare.ok());
  CHECK(bare.value().address.host == "10.0.0.2");
  CHECK(bare.value().address.port == 9000);
  CHECK(bare.value().base == "/v1");
  const auto slash = parse_load_target("localhost/");
  REQUIRE(slash.ok());
  CHECK(slash.value().address.port == 8600);
  CHECK(slash.value().base == "/v1");
  const auto path = parse_load_target("http://a:1/api/v3/");
  REQUIRE(path.ok());
  CHECK(path.value().base == "/api/v3");
  CHECK_FALSE(parse_load_target("https://a:1").ok());
  CHECK_FALSE(parse_load_target("http://a:x").ok());
}

}  // namespace
}  // namespace lockstep
