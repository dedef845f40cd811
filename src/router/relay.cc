#include "router/relay.h"

#include <fmt/core.h>

#include <utility>

#include "base/log.h"
#include "router/error_answer.h"
#include "router/forwarding.h"

namespace lockstep {
namespace {

bool asks_to_try_elsewhere(int status) {
  return status == 429 || status == 503;
}

int answer_status(const Error& error) {
  switch (error.code) {
    case ErrorCode::kInvalidArgument:  // the request cannot be sent to any backend
      return 400;
    case ErrorCode::kTimeout:
      return 504;
    case ErrorCode::kCorrupt:  // not HTTP, or too long for a gateway to forward
    case ErrorCode::kExhausted:
      return 502;
    default:
      return 503;
  }
}

}  // namespace

Relay::Relay(Context& context, Request request, HttpReply reply)
    : context_(context), request_(std::move(request)), reply_(std::move(reply)) {}

Relay::~Relay() {
  leave_backend();
}

void Relay::start() {
  reply_->on_disconnect([weak = weak_from_this(), loop = &context_.loop] {
    loop->post([weak] {
      if (const auto self = weak.lock()) self->cancel();
    });
  });
  try_next();
}

void Relay::try_next() {
  leave_backend();
  if (tried_.size() < context_.limits.attempts_max) {
    backend_ = context_.backends.choose(request_.key, tried_);
  }
  if (!backend_) return answer_without_backend();
  if (!tried_.empty()) ++context_.counters.retried;
  tried_.push_back(*backend_);
  context_.backends.begin(*backend_);
  HttpCall call = request_.call;
  const NetAddress& address = context_.backends.all()[*backend_].address;
  call.host = address.host;
  call.port = address.port;
  const RelayLimits& limits = context_.limits;
  answer_ = {};
  stream_ = HttpStream::start(
      context_.loop, std::move(call),
      {.connect_timeout = limits.connect_timeout,
       .first_byte_timeout = request_.key.is_stream ? limits.stream_first_byte_timeout
                                                    : limits.whole_first_byte_timeout,
       .silence_max = limits.silence_max,
       .whole_timeout = limits.whole_timeout},
      events());
}

void Relay::answer_without_backend() {
  ++context_.counters.failed;
  if (last_error_) {
    const int status = answer_status(*last_error_);
    reply_->send(error_answer(status, last_error_->message,
                              status == 400 ? "invalid_value" : "backend_failed"));
  } else if (context_.backends.is_any_healthy()) {
    reply_->send(
        error_answer(404,
                     fmt::format("no backend has a model named {}; GET /v1/models lists them",
                                 request_.key.model),
                     "model_not_found"));
  } else {
    reply_->send(error_answer(503, "none of the backends answers; GET /router/status shows why",
                              "no_backend"));
  }
  finish();
}

HttpStream::Events Relay::events() {
  const std::weak_ptr<Relay> weak = weak_from_this();
  return {.on_head =
              [weak](HttpAnswer head) {
                if (const auto self = weak.lock()) self->on_head(std::move(head));
              },
          .on_piece =
              [weak](std::string piece) {
                if (const auto self = weak.lock()) self->on_piece(std::move(piece));
              },
          .on_end =
              [weak] {
                if (const auto self = weak.lock()) self->on_end();
              },
          .on_failure =
              [weak](const Error& error) {
                if (const auto self = weak.lock()) self->on_failure(error);
              }};
}

void Relay::on_head(HttpAnswer head) {
  if (asks_to_try_elsewhere(head.status) && tried_.size() < context_.limits.attempts_max &&
      context_.backends.choose(request_.key, tried_)) {
    return try_next();
  }
  answer_ = std::move(head);
  is_sse_ = answer_.header("content-type").starts_with("text/event-stream");
  if (is_sse_) begin_answer();
}

void Relay::begin_answer() {
  is_begun_ = true;
  reply_->start(answer_.status, std::string(answer_.header("content-type")),
                forwarded_answer_headers(answer_.headers));
}

void Relay::on_piece(std::string piece) {
  if (is_sse_) return write(sse_.take(piece));
  if (is_begun_) return write(std::move(piece));
  answer_.body += piece;
  if (answer_.body.size() <= context_.limits.kept_answer_bytes_max) return stream_.resume();
  begin_answer();
  write(std::exchange(answer_.body, {}));
}

// The next piece is read when the client's socket has taken this one.
void Relay::write(std::string piece) {
  if (piece.empty()) return stream_.resume();
  reply_->write(std::move(piece), [weak = weak_from_this(), loop = &context_.loop] {
    loop->post([weak] {
      if (const auto self = weak.lock()) self->stream_.resume();
    });
  });
}

void Relay::on_end() {
  ++context_.counters.answered;
  if (is_begun_) {
    reply_->write(sse_.take_rest());
    reply_->finish();
  } else {
    reply_->send({answer_.status, std::string(answer_.header("content-type")),
                  std::move(answer_.body), forwarded_answer_headers(answer_.headers)});
  }
  finish();
}

void Relay::on_failure(const Error& error) {
  context_.backends.count_failure(*backend_);
  if (error.code == ErrorCode::kPeerLost && answer_.status == 0) {
    context_.backends.mark_lost(*backend_, error.message);
  }
  if (is_begun_) return break_off(error);
  last_error_ = error;
  if (error.code == ErrorCode::kInvalidArgument) return answer_without_backend();
  try_next();
}

// Sent data cannot be taken back: a stream reports the error as an event, others end early.
void Relay::break_off(const Error& error) {
  ++context_.counters.broken;
  log_warn("router: an answer was cut off: {}", error.message);
  if (is_sse_) {
    const std::string body = error_body(503, error.message, "backend_lost");
    reply_->write("data: " + body + "\n\n");
    reply_->finish();
  }
  finish();
}

void Relay::cancel() {
  if (!reply_) return;
  ++context_.counters.cancelled;
  finish();
}

void Relay::leave_backend() {
  stream_.cancel();
  if (backend_) context_.backends.end(*backend_);
  backend_.reset();
}

void Relay::finish() {
  leave_backend();
  reply_.reset();
  const auto self = shared_from_this();
  context_.on_done(self);
}

}  // namespace lockstep
