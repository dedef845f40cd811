#include "net/http/http_stream.h"

#include <doctest/doctest.h>

#include <future>
#include <memory>
#include <string>
#include <thread>

#include "net/serving.h"

namespace lockstep {
namespace {

using std::chrono::milliseconds;
constexpr std::chrono::seconds kStreamPatience{30};

// A stream on its own loop. Its pieces are collected; the next one is requested at once unless the
// stream is held.
class Streaming {
 public:
  Streaming(HttpCall call, const HttpStreamLimits& limits, bool is_held = false)
      : loop_(EventLoop::start()) {
    loop_->must_run([&] {
      stream_ = HttpStream::start(
          *loop_, std::move(call), limits,
          {.on_head = [this](const HttpAnswer& head) { head_.set_value(head); },
           .on_piece =
               [this, is_held](const std::string& piece) {
                 body_ += piece;
                 if (!std::exchange(has_piece_, true)) first_piece_.set_value();
                 if (!is_held) stream_.resume();
               },
           .on_end = [this] { result_.set_value(Ok{}); },
           .on_failure = [this](const Error& error) { result_.set_value(error); }});
    });
  }
  ~Streaming() { cancel(); }

  HttpAnswer head() { return wait(head_); }
  void wait_for_piece() { wait(first_piece_); }
  Status result() { return wait(result_); }
  std::string body() {
    std::string copy;
    loop_->must_run([&] { copy = body_; });
    return copy;
  }
  void resume() {
    loop_->must_run([&] { stream_.resume(); });
  }
  void cancel() {
    loop_->must_run([&] { stream_.cancel(); });
  }

 private:
  template <class Value>
  static Value wait(std::promise<Value>& promise) {
    auto future = promise.get_future();
    REQUIRE(future.wait_for(kStreamPatience) == std::future_status::ready);
    return future.get();
  }

  std::promise<HttpAnswer> head_;
  std::promise<void> first_piece_;
  std::promise<Status> result_;
  std::string body_;
  bool has_piece_ = false;
  std::unique_ptr<EventLoop> loop_;
  HttpStream stream_;
};

}  // namespace

TEST_CASE("an answer is passed on while it arrives") {
  std::promise<HttpReply> replies;
  Serving server([&](const HttpRequest& request, const HttpReply& reply) {
    reply.start(201, "text/plain", {{"X-Body", request.body}});
    reply.write("one ");
    replies.set_value(reply);
  });
  Streaming stream({.port = server.port(), .method = "POST", .target = "/a", .body = "asked"}, {});
  const HttpAnswer head = stream.head();
  CHECK(head.status == 201);
  CHECK(head.header("x-body") == "asked");
  stream.wait_for_piece();
  CHECK(stream.body() == "one ");  // the server has not written more yet
  const HttpReply reply = replies.get_future().get();
  reply.write("two");
  reply.finish();
  CHECK(stream.result().ok());
  CHECK(stream.body() == "one two");
}

TEST_CASE("without resume nothing more is read, with it everything arrives") {
  const std::string body(3 << 20, 'x');
  Serving server([&](const HttpRequest&, const HttpReply& reply) {
    reply.send({200, "text/plain", body, {}});
  });
  Streaming stream({.port = server.port()}, {}, true);
  stream.wait_for_piece();
  size_t bytes = stream.body().size();
  CHECK(bytes < body.size());
  while (bytes < body.size()) {
    stream.resume();
    bytes = stream.body().size();
  }
  stream.resume();
  CHECK(stream.result().ok());
  CHECK(stream.body() == body);
}

TEST_CASE("cancelling closes the connection, and the server notices") {
  std::promise<void> gone;
  Serving server([&](const HttpRequest&, const HttpReply& reply) {
    reply.on_disconnect([&gone, reply] { gone.set_value(); });
    reply.start(200, "text/plain");
    reply.write("one");
  });
  Streaming stream({.port = server.port()}, {});
  stream.wait_for_piece();
  stream.cancel();
  CHECK(gone.get_future().wait_for(kStreamPatience) == std::future_status::ready);
}

TEST_CASE("no answer, silence and a broken connection have distinct errors") {
  std::unique_ptr<HttpReply> silent;
  Serving server([&](const HttpRequest& request, const HttpReply& reply) {
    if (request.path == "/never") silent = std::make_unique<HttpReply>(reply);
    if (request.path == "/never") return;
    reply.start(200, "text/plain");
    reply.write("half");
    if (request.path == "/silent") silent = std::make_unique<HttpReply>(reply);
  });
  const auto code = [&](const std::string& target, const HttpStreamLimits& limits) {
    Streaming stream({.port = server.port(), .target = target}, limits);
    const Status result = stream.result();
    REQUIRE(!result.ok());
    MESSAGE(result.error().message);
    return result.error().code;
  };
  CHECK(code("/never", {.first_byte_timeout = milliseconds(50)}) == ErrorCode::kTimeout);
  CHECK(code("/silent", {.silence_max = milliseconds(50)}) == ErrorCode::kTimeout);
  CHECK(code("/broken", {}) == ErrorCode::kPeerLost);
  CHECK(code("no slash", {}) == ErrorCode::kInvalidArgument);
}

TEST_CASE("without a listener the stream fails") {
  uint16_t port = 0;
  {
    Serving server([](const HttpRequest&, const HttpReply&) {});
    port = server.port();
  }
  Streaming stream({.port = port}, {});
  const Status result = stream.result();
  REQUIRE(!result.ok());
  CHECK(result.error().code == ErrorCode::kPeerLost);
}

}  // namespace lockstep
