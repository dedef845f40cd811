// NodeCall: one request to a node whose whole answer arrives some time: nothing waits for it. Used
// by `lockstep run` and `lockstep top`; one thread.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cli/stream/node_stream.h"
#include "json/json.h"

namespace lockstep {

class NodeCall {
 public:
  // `call` as of NodeStream, with the proof that this user may control the node.
  NodeCall(const NodeFlags& flags, HttpCall call)
      : stream_(std::make_unique<NodeStream>(flags, std::move(call), true)) {}
  // nullopt: not yet. The answer's JSON; if the node refuses, its own sentence.
  std::optional<Result<Json>> poll();

 private:
  static constexpr size_t kBodyBytesMax = 16 << 20;
  std::unique_ptr<NodeStream> stream_;
  std::string body_;
};

}  // namespace lockstep
