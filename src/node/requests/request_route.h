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
  // Events of the route's requests. A row is the embedding of a request with pooling: routes carry
  // no rows of prompt_logits.
  EventSink on_event;
  // The group's state: once soon after the start, then whenever it changes.
  std::function<void(const ModelStatus&)> on_status;
  // The group or the connection is gone; no event follows. Not called when the route is destroyed.
  std::function<void(const Error&)> on_lost;
};

class RequestRoute {
 public:
  virtual ~RequestRoute() = default;
  // An error: this request itself is at fault, for example too large; other failures arrive as
  // events. An id may be submitted again after it has ended or the
  // group was busy.
  virtual Status submit(uint64_t id, const GenerateRequest& request) = 0;
  // Ended with kCancelled follows, unless it ends otherwise first.
  virtual void cancel(uint64_t id) = 0;
};

using MakeRoute = std::function<std::unique_ptr<RequestRoute>(RouteEvents)>;

}  // namespace lockstep
