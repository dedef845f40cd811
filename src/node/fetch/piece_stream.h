// PieceStream: asks one other node for pieces, over its own stream, on a thread that may wait. Any
// thread but the loop's; one at a time. Unusable after an error.
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "net/event_loop.h"
#include "node/fetch/piece_frames.h"
#include "node/fetch/piece_network.h"

namespace lockstep {

struct PieceStreamTimes {
  std::chrono::milliseconds open{5'000};
  std::chrono::milliseconds answer{30'000};  // its disk may be busy
  std::chrono::milliseconds chunk{15'000};   // between two chunks
};

class PieceStream {
 public:
  using Times = PieceStreamTimes;
  struct Reply {
    PieceAnswer answer;
    std::string body;
  };

  // kTimeout, kCancelled, or why it cannot be opened. Every wait checks `cancelled`.
  static Result<std::unique_ptr<PieceStream>> open(EventLoop& loop, PieceNetwork& network,
                                                   const NodeId& node, Times times,
                                                   const std::atomic<bool>* cancelled);
  ~PieceStream();

  // kCorrupt if the reply is invalid or longer than `body_bytes_max`.
  Result<Reply> ask(const PieceAsk& ask, size_t body_bytes_max,
                    const std::atomic<bool>* cancelled = nullptr);
  bool has_failed() const;

 private:
  struct State;
  PieceStream(std::shared_ptr<State> state, Times times)
      : state_(std::move(state)), times_(times) {}
  Result<std::string> receive(std::chrono::milliseconds timeout,
                              const std::atomic<bool>* cancelled);

  const std::shared_ptr<State> state_;
  const Times times_;
};

// Idle streams, kept because a node admits few new connections per second from one address
// (net/caller_gate.h). Any thread.
class PieceStreamPool {
 public:
  static constexpr size_t kIdleMax = 16;  // with one node; others are closed

  // Null: none is idle.
  std::unique_ptr<PieceStream> take(const NodeId& node);
  void give(const NodeId& node, std::unique_ptr<PieceStream> stream);
  void clear();

 private:
  std::mutex mutex_;
  std::map<NodeId, std::vector<std::unique_ptr<PieceStream>>> idle_;
};

}  // namespace lockstep
