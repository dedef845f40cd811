// RequestRoute: carries requests from the clients' node to the group that serves the model, on this
// node (local_route.h) or another (stream_route.h). All calls and events are on the cluster's loop,
// and none waits. Events never come from inside a call; an event may destroy the route. Destroying
// it cancels its requests, without events.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "base/result.h"
#include "engine/engine.h"
#include "node/models/model_service.h"

namespace lockstep {

struct RouteEvents {
  std::function<void(uint64_t id, int cached_tokens)> on_start;
  std::function<void(uint64_t id, int32_t token)> on_token;
  // Right before their token. May be empty.
  std::function<void(uint64_t id, std::span<const TokenLogprob>)> on_logprobs{};
  // The embedding of a request with pooling. Routes carry no rows of prompt_logits.
  std::function<void(uint64_t id, std::span<const float> row)> on_row;
  std::function<void(uint64_t id, Result<FinishReason>)> on_end;
  // The group is full; this request has not begun and may be submitted again later.
  std::function<void(uint64_t id)> on_busy;
  // The group's state: once soon after the start, then whenever it changes.
  std::function<void(const ModelStatus&)> on_status;
  // The group or the connection is gone; no event follows. Not called when the route is destroyed.
  std::function<void(const Error&)> on_lost;
};

class RequestRoute {
 public:
  virtual ~RequestRoute() = default;
  // An error: this request itself is at fault, for example too large; other failures arrive as
  // events. An id may be submitted again after its on_end or on_busy.
  virtual Status submit(uint64_t id, const GenerateRequest& request) = 0;
  // on_end(kCancelled) follows, unless it ends otherwise first.
  virtual void cancel(uint64_t id) = 0;
};

using MakeRoute = std::function<std::unique_ptr<RequestRoute>(RouteEvents)>;

}  // namespace lockstep
