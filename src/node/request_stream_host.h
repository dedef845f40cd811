// RequestStreamHost: the owner's end of a stream of requests: hands what another node's clients ask
// for to the group of this node, and what the group says back. One for each stream, which is the
// integrity of a member of the cluster: who opened it and whether this node serves what its purpose
// names was checked before. Loop's thread only.
#pragma once

#include <functional>
#include <memory>

#include "net/event_loop.h"
#include "net/frame_connection.h"
#include "node/model_service.h"

namespace lockstep {

class RequestStreamHost {
 public:
  static constexpr size_t kRequestsMax = 1024;  // of one stream at a time; more are told "busy"

  // `on_end` comes once, not from inside this, when the stream has ended or the model is gone, with
  // the reason; it may destroy this. Makes no difference between a stream that has closed already
  // and one that closes. `service` as for make_local_route().
  RequestStreamHost(EventLoop& loop, FrameConnection connection,
                    std::shared_ptr<ModelService> service, std::function<void(Error)> on_end);
  RequestStreamHost(RequestStreamHost&&) = delete;
  // Cancels what it still carries, and closes the stream, in which the clients' node sees a loss.
  ~RequestStreamHost();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace lockstep
