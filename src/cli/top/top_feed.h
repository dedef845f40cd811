// TopFeed: what `lockstep top` learns from a node, without ever waiting for it longer than asked:
// its events, its requests once a second, and answers to what the user does. Connects again after a
// loss. One thread.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>

#include "cli/client/node_client.h"
#include "cli/stream/node_call.h"
#include "cli/stream/node_stream.h"
#include "cli/top/top_state.h"

namespace lockstep {

class TopFeed {
 public:
  using Clock = std::chrono::steady_clock;

  explicit TopFeed(NodeFlags flags);

  // Takes what comes within this time.
  void take(std::chrono::milliseconds limit, TopFacts& facts);
  // Called for each event of the node.
  void on_happening(std::function<void(const Json&)> call) { on_happening_ = std::move(call); }

 private:
  void connect();
  void take_piece(const NodeStream::Step& step, TopFacts& facts);
  void take_requests(TopFacts& facts, Clock::time_point now);

  const NodeFlags flags_;
  std::unique_ptr<NodeStream> events_;
  EventReader reader_;
  std::optional<NodeCall> requests_;
  Clock::time_point next_requests_;
  Clock::time_point next_connect_;
  std::function<void(const Json&)> on_happening_;
  bool has_begun_ = false;
};

}  // namespace lockstep
