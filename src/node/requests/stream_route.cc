#include "node/requests/stream_route.h"

#include <fmt/format.h>

#include <deque>
#include <string>
#include <utility>

#include "base/check.h"
#include "node/requests/request_frames.h"
#include "node/wire/messages.h"

namespace lockstep {
namespace {

// In the connection, which takes 8 MiB. The rest waits here: prompts of the requests that the
// clients' node holds, whose number is limited.
constexpr size_t kUnsentBytesMax = size_t{2} << 20;

class Stream : public std::enable_shared_from_this<Stream> {
 public:
  Stream(FrameConnection connection, RouteEvents events)
      : connection_(std::move(connection)), events_(std::move(events)) {
    events_.on_lost = [this, on_lost = std::move(events_.on_lost)](const Error& error) {
      stop();
      on_lost(error);
    };
  }

  // Events begin here.
  void start() {
    if (is_over_) return;
    if (!connection_.is_open()) {
      return events_.on_lost({ErrorCode::kPeerLost, "the stream to the model's node has closed"});
    }
    const std::weak_ptr<Stream> weak = shared_from_this();
    connection_.set_events({.on_frame =
                                [weak](const std::string& frame) {
                                  if (const auto self = weak.lock()) self->take(frame);
                                },
                            .on_close =
                                [weak](const Error& error) {
                                  if (const auto self = weak.lock()) self->on_close(error);
                                },
                            .on_drained =
                                [weak] {
                                  if (const auto self = weak.lock()) self->send_waiting();
                                }});
    send_waiting();
  }

  void stop() {
    is_over_ = true;
    waiting_.clear();
    connection_.close();
  }

  Status send(RequestMessage type, std::string_view payload) {
    if (is_over_) return Ok{};
    for (std::string& frame : TRY(request_frames(type, payload))) {
      waiting_.push_back(std::move(frame));
    }
    send_waiting();
    return Ok{};
  }

 private:
  void take(const std::string& frame) {
    if (is_over_) return;
    auto message = reader_.take(frame);
    Status passed = Ok{};
    if (!message.ok()) {
      passed = std::move(message.error());
    } else if (message.value()) {
      passed = tell_route(events_, *message.value());
    }
    if (passed.ok() || is_over_) return;
    events_.on_lost(
        {passed.error().code,
         fmt::format("the model's node sent an invalid message: {}", passed.error().message)});
  }

  void on_close(const Error& error) {
    if (is_over_) return;
    events_.on_lost({ErrorCode::kPeerLost,
                     fmt::format("the stream to the model's node broke: {}", error.message)});
  }

  void send_waiting() {
    while (!is_over_ && !waiting_.empty() && connection_.unsent_bytes() < kUnsentBytesMax) {
      connection_.send(waiting_.front());
      waiting_.pop_front();
    }
  }

  FrameConnection connection_;
  RouteEvents events_;  // on_lost may destroy this
  RequestFrameReader reader_;
  std::deque<std::string> waiting_;
  bool is_over_ = false;
};

class StreamRoute final : public RequestRoute {
 public:
  StreamRoute(EventLoop& loop, FrameConnection connection, RouteEvents events)
      : stream_(std::make_shared<Stream>(std::move(connection), std::move(events))) {
    loop.post([weak = std::weak_ptr<Stream>(stream_)] {
      if (const auto stream = weak.lock()) stream->start();
    });
  }
  ~StreamRoute() override { stream_->stop(); }

  Status submit(uint64_t id, const GenerateRequest& request) override {
    return stream_->send(RequestMessage::kSubmit, encode_request(id, request));
  }
  void cancel(uint64_t id) override {
    const Status sent = stream_->send(RequestMessage::kCancel, encode_id(id));
    LOCKSTEP_CHECK(sent.ok());  // it is short
  }

 private:
  const std::shared_ptr<Stream> stream_;
};

}  // namespace

std::unique_ptr<RequestRoute> make_stream_route(EventLoop& loop, FrameConnection connection,
                                                RouteEvents events) {
  return std::make_unique<StreamRoute>(loop, std::move(connection), std::move(events));
}

}  // namespace lockstep
