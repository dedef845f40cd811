#include "cli/stream/node_stream.h"

#include <condition_variable>
#include <mutex>
#include <utility>

#include "json/json.h"

namespace lockstep {

struct NodeStream::Mailbox {
  std::mutex mutex;  // guards what follows
  std::condition_variable changed;
  int status = 0;
  std::string pieces;
  bool waits = false;  // nothing is read until the pieces have been taken
  bool has_ended = false;
  std::optional<Error> error;
};

namespace {

Error refusal_of(int status, const std::string& body) {
  const auto json = parse_untrusted_json(body);
  const Json* error = json.ok() ? find(json.value(), "error") : nullptr;
  std::string message = error != nullptr ? refusal_text(*error) : "";
  if (message.empty()) message = "the program that answers there is not a lockstep node";
  return {error_code_of_status(status), std::move(message)};
}

HttpStreamLimits node_limits() {
  HttpStreamLimits limits;
  limits.first_byte_timeout = NodeStream::kSilenceMax;
  limits.silence_max = NodeStream::kSilenceMax;
  return limits;
}

}  // namespace

NodeStream::NodeStream(const NodeFlags& flags, HttpCall call, bool with_control)
    : mailbox_(std::make_shared<Mailbox>()), loop_(EventLoop::start()) {
  const auto mailbox = mailbox_;
  const auto tell = [mailbox](auto&& change) {
    {
      const std::lock_guard lock(mailbox->mutex);
      change(*mailbox);
    }
    mailbox->changed.notify_all();
  };
  HttpStream::Events events;
  events.on_head = [tell](const HttpAnswer& head) {
    tell([&](Mailbox& box) { box.status = head.status; });
  };
  events.on_piece = [tell](const std::string& piece) {
    tell([&](Mailbox& box) {
      box.pieces += piece;
      box.waits = true;
    });
  };
  events.on_end = [tell] { tell([](Mailbox& box) { box.has_ended = true; }); };
  events.on_failure = [tell](Error error) {
    tell([&](Mailbox& box) { box.error = std::move(error); });
  };
  // The destructor's own work on the loop comes after this, so it may use this object.
  loop_->post([this, flags, call = std::move(call), with_control, events]() mutable {
    if (with_control) add_control(flags, call);
    address_call(flags, call);
    stream_ = HttpStream::start(*loop_, std::move(call), node_limits(), std::move(events));
  });
}

NodeStream::~NodeStream() {
  loop_->must_run([this] { stream_ = HttpStream(); });
}

NodeStream::Step NodeStream::next(std::chrono::milliseconds limit) {
  Mailbox& box = *mailbox_;
  const auto deadline = std::chrono::steady_clock::now() + limit;
  std::unique_lock lock(box.mutex);
  while (true) {
    const bool is_refusal = box.status != 0 && box.status != 200;
    // A refusal is read whole, up to its limit.
    const bool is_over = box.has_ended || box.error || box.pieces.size() > kErrorBytesMax;
    if (is_refusal && is_over) {
      return {Kind::kFailure, "", refusal_of(box.status, box.pieces)};
    }
    if (is_refusal ? box.waits : !box.pieces.empty()) {
      if (std::exchange(box.waits, false)) loop_->post([this] { stream_.resume(); });
      if (is_refusal) continue;
      has_begun_ = true;
      return {Kind::kPiece, std::exchange(box.pieces, {}), {}};
    }
    if (box.error) return {Kind::kFailure, "", box.error};
    if (box.has_ended) return {Kind::kEnd, "", {}};
    if (box.changed.wait_until(lock, deadline) == std::cv_status::timeout) return {};
  }
}

}  // namespace lockstep
