// PieceStream: questions for pieces to one other node, over a stream of its own, for a thread that
// may wait. Any thread but the loop's; one at a time. After an error it is of no more use.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <string>

#include "base/result.h"
#include "net/event_loop.h"
#include "node/piece_frames.h"
#include "node/piece_network.h"

namespace lockstep {

struct PieceStreamTimes {
  std::chrono::milliseconds open{5'000};
  std::chrono::milliseconds answer{30'000};  // its disk may be busy
  std::chrono::milliseconds chunk{15'000};   // from one part to the next
};

class PieceStream {
 public:
  using Times = PieceStreamTimes;
  struct Reply {
    PieceAnswer answer;
    std::string body;
  };

  // kTimeout, kCancelled, or why there is none. `cancelled` is looked at in every wait.
  static Result<std::unique_ptr<PieceStream>> open(EventLoop& loop, PieceNetwork& network,
                                                   const NodeId& node, Times times,
                                                   const std::atomic<bool>* cancelled);
  ~PieceStream();

  // kCorrupt for what is no answer or longer than `body_bytes_max`.
  Result<Reply> ask(const PieceAsk& ask, size_t body_bytes_max);

 private:
  struct State;
  PieceStream(std::shared_ptr<State> state, Times times, const std::atomic<bool>* cancelled)
      : state_(std::move(state)), times_(times), cancelled_(cancelled) {}
  Result<std::string> receive(std::chrono::milliseconds timeout);

  const std::shared_ptr<State> state_;
  const Times times_;
  const std::atomic<bool>* const cancelled_;
};

}  // namespace lockstep
