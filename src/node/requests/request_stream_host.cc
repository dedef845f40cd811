#include "node/requests/request_stream_host.h"

#include <fmt/format.h>

#include <set>
#include <string>
#include <utility>

#include "base/check.h"
#include "node/requests/local_route.h"
#include "node/requests/request_frames.h"
#include "node/wire/event_codec.h"
#include "node/wire/messages.h"
#include "node/wire/status_message.h"

namespace lockstep {

struct RequestStreamHost::Impl : std::enable_shared_from_this<Impl> {
  Impl(FrameConnection opened, std::function<void(Error)> ended)
      : connection(std::move(opened)), on_end(std::move(ended)) {}

  void start(EventLoop& loop, std::shared_ptr<ModelService> service);
  void take(const std::string& frame);
  Status submit(uint64_t id, const GenerateRequest& request);
  RouteEvents route_events();
  void send(RequestMessage type, std::string_view payload);
  void send_event(const RequestEvent& event);
  void end(Error error);
  void stop();

  FrameConnection connection;
  std::function<void(Error)> on_end;
  RequestFrameReader reader;
  std::unique_ptr<RequestRoute> route;
  std::set<uint64_t> running;
  bool is_over = false;
};

RequestStreamHost::RequestStreamHost(EventLoop& loop, FrameConnection connection,
                                     std::shared_ptr<ModelService> service,
                                     std::function<void(Error)> on_end)
    : impl_(std::make_shared<Impl>(std::move(connection), std::move(on_end))) {
  loop.post([weak = std::weak_ptr<Impl>(impl_), &loop, service = std::move(service)] {
    if (const auto impl = weak.lock()) impl->start(loop, service);
  });
}

RequestStreamHost::~RequestStreamHost() {
  impl_->stop();
}

void RequestStreamHost::Impl::start(EventLoop& loop, std::shared_ptr<ModelService> service) {
  if (is_over) return;
  if (!connection.is_open()) {
    return end({ErrorCode::kPeerLost, "the stream has closed"});
  }
  route = make_local_route(loop, std::move(service), route_events());
  const std::weak_ptr<Impl> weak = shared_from_this();
  connection.set_events({.on_frame =
                             [weak](const std::string& frame) {
                               if (const auto self = weak.lock()) self->take(frame);
                             },
                         .on_close =
                             [weak](Error error) {
                               if (const auto self = weak.lock()) self->end(std::move(error));
                             },
                         .on_drained = nullptr});
}

void RequestStreamHost::Impl::take(const std::string& frame) {
  if (is_over) return;
  const RouteCalls calls{
      .submit = [this](uint64_t id, const GenerateRequest& request) { return submit(id, request); },
      .cancel = [this](uint64_t id) { route->cancel(id); }};
  auto message = reader.take(frame);
  Status asked = Ok{};
  if (!message.ok()) {
    asked = std::move(message.error());
  } else if (message.value()) {
    asked = ask_route(calls, *message.value());
  }
  if (asked.ok()) return;
  send(RequestMessage::kLost, encode_error(asked.error()));
  end(std::move(asked.error()));
}

Status RequestStreamHost::Impl::submit(uint64_t id, const GenerateRequest& request) {
  if (running.contains(id)) {
    return Error{ErrorCode::kCorrupt, fmt::format("a stream of requests has request {} twice", id)};
  }
  if (running.size() >= kRequestsMax) {
    send_event({id, RequestEvent::Busy{}});
    return Ok{};
  }
  running.insert(id);
  const Error no_rows{ErrorCode::kUnsupported, "rows of logits are not sent to other nodes"};
  Status submitted = request.prompt_logits ? Status(no_rows) : route->submit(id, request);
  if (!submitted.ok()) send_event({id, RequestEvent::Ended{submitted.error()}});
  return Ok{};
}

// The route is destroyed with this, and its events end before.
RouteEvents RequestStreamHost::Impl::route_events() {
  return {.on_event = [this](const RequestEvent& event) { send_event(event); },
          .on_status =
              [this](const ModelStatus& status) {
                send(RequestMessage::kStatus, encode_status(status));
              },
          .on_lost =
              [this](const Error& error) {
                send(RequestMessage::kLost, encode_error(error));
                end(error);
              }};
}

// The connection drops a stream that does not drain.
void RequestStreamHost::Impl::send(RequestMessage type, std::string_view payload) {
  const auto frames = request_frames(type, payload);
  LOCKSTEP_CHECK(frames.ok());  // all messages sent here are short
  for (const std::string& frame : frames.value()) connection.send(frame);
}

void RequestStreamHost::Impl::send_event(const RequestEvent& event) {
  const bool is_over_here = event.as<RequestEvent::Ended>() || event.as<RequestEvent::Busy>();
  if (is_over_here) running.erase(event.id);
  send(RequestMessage::kEvent, encode_event(event));
}

// Messages already sent still arrive.
void RequestStreamHost::Impl::end(Error error) {
  if (std::exchange(is_over, true)) return;
  const auto keep = shared_from_this();
  connection.finish();
  route.reset();
  if (const auto called = std::exchange(on_end, nullptr)) called(std::move(error));
}

void RequestStreamHost::Impl::stop() {
  if (std::exchange(is_over, true)) return;
  connection.close();
  route.reset();
}

}  // namespace lockstep
