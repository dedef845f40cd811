#include "node/requests/request_stream_host.h"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/threads/guarded.h"
#include "node/requests/local_route.h"
#include "node/requests/request_frames.h"
#include "node/wire/event_codec.h"
#include "node/wire/status_message.h"

namespace lockstep {

struct RequestStreamHost::Impl : std::enable_shared_from_this<Impl> {
  Impl(FrameConnection opened, std::function<void(Error)> ended, DecodeRequest decode_request)
      : connection(std::move(opened)),
        on_end(std::move(ended)),
        decode(std::move(decode_request)) {}

  void start(EventLoop& loop, std::shared_ptr<ModelService> service);
  void take(const std::string& frame);
  Status submit(uint64_t id, std::string encoded);
  void take_decoded(uint64_t id, DecodedRequest decoded);
  void submit_or_end(uint64_t id, DecodedRequest decoded);
  void submit_decoded(uint64_t id, const GenerateRequest& request);
  void cancel(uint64_t id);
  RouteEvents route_events();
  void send(RequestMessage type, std::string_view payload);
  void send_event(const RequestEvent& event);
  void lose(Error error);
  void end(Error error);
  void stop();

  FrameConnection connection;
  std::function<void(Error)> on_end;
  const DecodeRequest decode;
  RequestFrameReader reader;
  std::unique_ptr<RequestRoute> route;
  std::optional<RequestDecoder> decoder;
  std::set<uint64_t> running;          // also those being decoded
  std::map<uint64_t, bool> undecoded;  // whether they are cancelled
  bool is_over = false;
};

RequestStreamHost::RequestStreamHost(EventLoop& loop, FrameConnection connection,
                                     std::shared_ptr<ModelService> service,
                                     std::function<void(Error)> on_end, DecodeRequest decode)
    : impl_(std::make_shared<Impl>(std::move(connection), std::move(on_end), std::move(decode))) {
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
  decoder.emplace(loop, decode, [weak](uint64_t id, DecodedRequest decoded) {
    if (const auto self = weak.lock()) self->take_decoded(id, std::move(decoded));
  });
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
      .submit = [this](uint64_t id, std::string encoded) { return submit(id, std::move(encoded)); },
      .cancel = [this](uint64_t id) { cancel(id); }};
  auto message = reader.take(frame);
  Status asked = Ok{};
  if (!message.ok()) {
    asked = std::move(message.error());
  } else if (message.value()) {
    asked = ask_route(calls, std::move(*message.value()));
  }
  if (!asked.ok()) lose(std::move(asked.error()));
}

void RequestStreamHost::Impl::lose(Error error) {
  send(RequestMessage::kLost, encode_error(error));
  end(std::move(error));
}

Status RequestStreamHost::Impl::submit(uint64_t id, std::string encoded) {
  if (running.contains(id)) {
    return Error{ErrorCode::kCorrupt, fmt::format("a stream of requests has request {} twice", id)};
  }
  if (running.size() >= kRequestsMax || !decoder->add(id, std::move(encoded))) {
    send_event({id, RequestEvent::Busy{}});
    return Ok{};
  }
  running.insert(id);
  undecoded[id] = false;
  return Ok{};
}

void RequestStreamHost::Impl::cancel(uint64_t id) {
  const auto found = undecoded.find(id);
  if (found == undecoded.end()) return route->cancel(id);
  found->second = true;
}

// A request without an answer would wait for ever, so the stream ends if one cannot be given.
void RequestStreamHost::Impl::take_decoded(uint64_t id, DecodedRequest decoded) {
  if (is_over) return;
  Status taken = guarded([&] { submit_or_end(id, std::move(decoded)); });
  if (!taken.ok()) end(std::move(taken.error()));
}

void RequestStreamHost::Impl::submit_or_end(uint64_t id, DecodedRequest decoded) {
  const bool is_cancelled = undecoded.extract(id).mapped();
  if (!decoded.ok() && decoded.error().code == ErrorCode::kExhausted) {
    return send_event({id, RequestEvent::Ended{std::move(decoded.error())}});
  }
  if (!decoded.ok()) return lose(std::move(decoded.error()));
  if (!is_cancelled) return submit_decoded(id, decoded.value().second);
  const Error cancelled{ErrorCode::kCancelled, "the request was cancelled"};
  send_event({id, RequestEvent::Ended{cancelled}});
}

void RequestStreamHost::Impl::submit_decoded(uint64_t id, const GenerateRequest& request) {
  const Error no_rows{ErrorCode::kUnsupported, "rows of logits are not sent to other nodes"};
  const Status submitted = request.prompt_logits ? Status(no_rows) : route->submit(id, request);
  if (!submitted.ok()) send_event({id, RequestEvent::Ended{submitted.error()}});
}

// The route is destroyed with this, and its events end before.
RouteEvents RequestStreamHost::Impl::route_events() {
  return {.on_event = [this](const RequestEvent& event) { send_event(event); },
          .on_status =
              [this](const ModelStatus& status) {
                send(RequestMessage::kStatus, encode_status(status));
              },
          .on_lost = [this](const Error& error) { lose(error); }};
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
  decoder.reset();
  route.reset();
  if (const auto called = std::exchange(on_end, nullptr)) called(std::move(error));
}

void RequestStreamHost::Impl::stop() {
  if (std::exchange(is_over, true)) return;
  connection.close();
  decoder.reset();
  route.reset();
}

}  // namespace lockstep
