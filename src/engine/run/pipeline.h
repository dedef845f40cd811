// Pipeline: one rank's place among the stages: the group of its stage and the links in and out.
// Work passes from stage to stage, and chosen tokens return to world rank 0; with one stage there
// is only the group. All links of a rank and all messages in flight live here, so that a new group
// replaces one object. The engine's thread uses it.
//
// Messages move while the stage computes (poll()), so that a neighbour need not wait for it, and a
// rank that waits to send keeps receiving, so that full links cannot deadlock the stages.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <vector>

#include "collective/group/stage_links.h"
#include "collective/sums/idle_wait.h"
#include "collective/sums/message_stream.h"

namespace lockstep {

class Pipeline {
 public:
  struct Limits {
    size_t work_bytes_max = 0;
    size_t result_bytes_max = 0;
    int in_flight_max = 1;  // steps that rank 0 has in flight
  };

  // Takes the links of all ranks apart.
  Pipeline(Group world, int stages);
  // Call before sending or receiving: bounds incoming messages.
  void set_limits(const Limits& limits);

  const StagePlace& place() const { return place_; }
  // Plans steps and receives the chosen tokens.
  bool is_leader() const { return place_.world_rank() == 0; }
  Group& group() { return group_; }

  // Moves what can move, without waiting.
  Status poll();

  // To the next stage, or from the last stage's first rank to rank 0; no-op elsewhere. Waits until
  // the previous message has left, then leaves its buffer in `message`.
  bool can_send() const { return sender_.has_value(); }
  Status send(std::vector<std::byte>& message);
  // Returns once everything sent has left this process.
  Status flush();

  // From the previous stage, or on rank 0 from the last stage.
  bool has_message() const { return receiver_ && receiver_->has_message(); }
  void take(std::vector<std::byte>& message) { receiver_->take(message); }
  // Idles until there is a message, with no deadline: for a rank with no work in flight. It polls
  // for about a millisecond and then sleeps.
  Status wait_for_work();
  // Waits for a message that must come, or until `is_interrupted` is true. The deadline limits
  // silence.
  Status wait_for_result(const std::function<bool()>& is_interrupted);

 private:
  Result<bool> move();
  // Whether to give up waiting for a message. A stage that was stopped may leave before later ones,
  // so the outgoing link is checked only while it is in use.
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
  int in_rank_ = -1;  // in the world
  int out_rank_ = -1;
  std::optional<MessageSender> sender_;
  std::optional<MessageReceiver> receiver_;
};

}  // namespace lockstep
