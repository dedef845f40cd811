// A RequestRoute to a model on this node, usually the GroupSupervisor of a placement. Its events
// arise on a thread of the service and are posted to the loop, in order; none arrives after the
// route is destroyed. Loop's thread only.
#pragma once

#include <memory>

#include "net/event_loop.h"
#include "node/models/model_service.h"
#include "node/requests/request_route.h"

namespace lockstep {

// The route keeps `service` alive: its owner must stop it before releasing it, so that destroying
// the route's handle, if it is the last, does not wait.
std::unique_ptr<RequestRoute> make_local_route(EventLoop& loop,
                                               std::shared_ptr<ModelService> service,
                                               RouteEvents events);

}  // namespace lockstep
