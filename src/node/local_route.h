// A RequestRoute to a model on this node, usually the LocalGroup of a placement. Its events, which
// come on a thread of the service, are posted to the loop, in order; none is left over once the
// route is destroyed. Loop's thread only.
#pragma once

#include <memory>

#include "net/event_loop.h"
#include "node/model_service.h"
#include "node/request_route.h"

namespace lockstep {

// The route keeps `service` alive: who owns it stops it before letting go, so that the route's
// handle, if it is the last, has nothing to wait for.
std::unique_ptr<RequestRoute> make_local_route(EventLoop& loop,
                                               std::shared_ptr<ModelService> service,
                                               RouteEvents events);

}  // namespace lockstep
