// A RequestRoute over a stream to the node that owns the group (cluster/peers/peers.h, kind
// "requests"), where a RequestStreamHost answers. Loop's thread only.
//
// Prompts of any length up to kRequestMessageBytesMax are sent one after the other, as fast as the
// other end takes them, so that many long ones do not fill the connection's queue.
#pragma once

#include <memory>

#include "net/event_loop.h"
#include "net/frames/frame_connection.h"
#include "node/requests/request_route.h"

namespace lockstep {

inline constexpr const char* kRequestStream = "requests";

// Takes the connection, even one that has closed already: then on_lost follows.
std::unique_ptr<RequestRoute> make_stream_route(EventLoop& loop, FrameConnection connection,
                                                RouteEvents events);

}  // namespace lockstep
