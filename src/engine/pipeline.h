// Pipeline: one rank's place among the stages: the group of its stage, and the ways in and out.
// Work goes from stage to stage and what was chosen back to world rank 0; with one stage there is
// nothing but the group. All links of a rank and everything that is on its way lie here, so that a
// group formed anew replaces one object. The engine's thread uses it.
//
// Messages move while the stage computes (poll()), so that a neighbour need not wait for it, and
// whoever waits to send goes on receiving, so that full links cannot lock the stages against each
// other.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <vector>

#include "collective/idle_wait.h"
#include "collective/message_stream.h"
#include "collective/stage_links.h"

namespace lockstep {

class Pipeline {
 public:
  struct Limits {
    size_t work_bytes_max = 0;
    size_t result_bytes_max = 0;
    int in_flight_max = 1;  // steps that rank 0 has under way
  };

  // Takes the links of all ranks apart.
  Pipeline(Group world, int stages);
  // Before anything is sent or received: bounds what may come in.
  void set_limits(const Limits& limits);

  const StagePlace& place() const { return place_; }
  // Plans steps and gets what was chosen.
  bool is_leader() const { return place_.world_rank() == 0; }
  Group& group() { return group_; }

  // Moves what can move, without waiting.
  Status poll();

  // To the next stage, or from the last stage's first rank to rank 0; elsewhere nothing is sent.
  // Waits until the message before has left, then leaves the memory of that one in `message`.
  bool can_send() const { return sender_.has_value(); }
  Status send(std::vector<std::byte>& message);
  // Returns once everything sent has left this process.
  Status flush();

  // Of the stage before, or on rank 0 of the last stage.
  bool has_message() const { return receiver_ && receiver_->has_message(); }
  void take(std::vector<std::byte>& message) { receiver_->take(message); }
  // Idles until there is a message, with no deadline: for a rank that has nothing under way. It
  // polls for about a millisecond and then sleeps.
  Status wait_for_work();
  // Waits for a message that must come, or until `is_interrupted` is true. The deadline is one of
  // silence.
  Status wait_for_result(const std::function<bool()>& is_interrupted);

 private:
  Result<bool> move();
  // Whether the wait for a message has become pointless. A stage that is told to stop may leave
  // before those behind it, so they look at the way out only while they use it.
  Status check() const;
  Status pause(IdleWait& idle, Link* link) const;
  Error silent(int rank, const char* what) const;

  StagePlace place_;
  StageLinks links_;
  std::chrono::milliseconds silence_max_;
  const std::atomic<bool>* cancelled_;
  Progress* progress_;
  Group group_;
  Link* in_ = nullptr;
  Link* out_ = nullptr;
  int in_rank_ = -1;  // of the world
  int out_rank_ = -1;
  std::optional<MessageSender> sender_;
  std::optional<MessageReceiver> receiver_;
};

}  // namespace lockstep
