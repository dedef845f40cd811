#include "router/fetch.h"

#include <fmt/core.h>

#include <string>

#include "net/http/http_stream.h"

namespace lockstep {

struct Fetch::State : std::enable_shared_from_this<State> {
  explicit State(Ready called) : ready(std::move(called)) {}

  HttpStream::Events events();
  void add(const std::string& piece);
  void complete(Result<HttpAnswer> result);

  Ready ready;  // empty once called or cancelled
  HttpStream stream;
  EventLoop::Timer deadline;
  HttpAnswer answer;
  size_t body_bytes_max = 0;
};

HttpStream::Events Fetch::State::events() {
  const std::weak_ptr<State> weak = weak_from_this();
  return {.on_head =
              [weak](HttpAnswer head) {
                if (const auto self = weak.lock()) self->answer = std::move(head);
              },
          .on_piece =
              [weak](const std::string& piece) {
                if (const auto self = weak.lock()) self->add(piece);
              },
          .on_end =
              [weak] {
                if (const auto self = weak.lock()) self->complete(std::move(self->answer));
              },
          .on_failure =
              [weak](Error error) {
                if (const auto self = weak.lock()) self->complete(std::move(error));
              }};
}

void Fetch::State::add(const std::string& piece) {
  answer.body += piece;
  if (answer.body.size() > body_bytes_max) {
    return complete(Error{ErrorCode::kExhausted,
                          fmt::format("its answer is longer than {} bytes", body_bytes_max)});
  }
  stream.resume();
}

void Fetch::State::complete(Result<HttpAnswer> result) {
  stream.cancel();
  deadline.cancel();
  if (const Ready called = std::exchange(ready, nullptr)) called(std::move(result));
}

Fetch Fetch::start(EventLoop& loop, HttpCall call, Ready ready) {
  auto state = std::make_shared<State>(std::move(ready));
  state->body_bytes_max = call.body_bytes_max;
  const auto timeout = call.timeout;
  state->deadline = loop.call_after(timeout, [weak = std::weak_ptr(state), timeout] {
    if (const auto self = weak.lock()) {
      self->complete(Error{ErrorCode::kTimeout,
                           fmt::format("it has not answered within {} ms", timeout.count())});
    }
  });
  const HttpStreamLimits limits{timeout, timeout, timeout};
  state->stream = HttpStream::start(loop, std::move(call), limits, state->events());
  return Fetch(std::move(state));
}

Fetch& Fetch::operator=(Fetch&& other) noexcept {
  if (this != &other) {
    cancel();
    state_ = std::move(other.state_);
  }
  return *this;
}

void Fetch::cancel() {
  const auto state = std::exchange(state_, nullptr);
  if (state == nullptr) return;
  state->ready = nullptr;
  state->stream.cancel();
  state->deadline.cancel();
}

}  // namespace lockstep
