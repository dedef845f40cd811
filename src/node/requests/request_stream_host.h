// RequestStreamHost: the owner's end of a stream of requests: submits the requests of another
// node's clients to this node's group, and sends back its events. One per stream, whose opener is a
// member of the cluster and whose purpose names a model served here: both checked before. Loop's
// thread only.
#pragma once

#include <functional>
#include <memory>

#include "net/event_loop.h"
#include "net/frames/frame_connection.h"
#include "node/models/model_service.h"
#include "node/requests/request_decoder.h"
#include "node/wire/messages.h"

namespace lockstep {

class RequestStreamHost {
 public:
  static constexpr size_t kRequestsMax = 1024;  // of one stream at a time; others get "busy"

  // `on_end` is called once, not from inside this constructor, with the reason, when the stream has
  // closed, even before this call, or the model is gone; it may destroy this. `service`: see
  // make_local_route(). `decode` is called outside of the loop's thread.
  RequestStreamHost(EventLoop& loop, FrameConnection connection,
                    std::shared_ptr<ModelService> service, std::function<void(Error)> on_end,
                    DecodeRequest decode = decode_request);
  RequestStreamHost(RequestStreamHost&&) = delete;
  // Cancels its requests and closes the stream, which the clients' node sees as a loss.
  ~RequestStreamHost();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace lockstep
