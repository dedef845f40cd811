// RequestRoute: the way of requests from the node that holds their clients to the group that serves
// the model, on this node or on another. Belongs to the cluster's loop: all calls and events there,
// none of them waits. Destroying it cancels what it still carries, without events.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "base/result.h"
#include "engine/engine.h"
#include "node/model_service.h"

namespace lockstep {

struct RouteEvents {
  std::function<void(uint64_t id, int32_t token)> on_token;
  std::function<void(uint64_t id, std::span<const float> row)> on_logits;
  std::function<void(uint64_t id, Result<FinishReason>)> on_end;
  // The group or the way to it is gone; nothing more comes. Not when the route is destroyed.
  std::function<void(const Error&)> on_lost;
};

class RequestRoute {
 public:
  virtual ~RequestRoute() = default;
  // kExhausted: this request is too large; other failures come as on_lost.
  virtual Status submit(uint64_t id, const GenerateRequest& request) = 0;
  virtual void cancel(uint64_t id) = 0;
};

}  // namespace lockstep
