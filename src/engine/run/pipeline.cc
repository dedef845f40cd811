#include "engine/run/pipeline.h"

#include <fmt/core.h>

#include <utility>

#include "base/check.h"

namespace lockstep {
namespace {

// A stage may compute a step of a long prompt while others wait for it: longer than the ranks of
// one stage, which do the same work at the same time, wait for each other.
constexpr int kSilenceFactor = 30;

// Between two checks for other reasons to end the wait.
constexpr std::chrono::milliseconds kIdleSleep{40};
constexpr std::chrono::milliseconds kResultSleep{2};

}  // namespace

Pipeline::Pipeline(Group world, int stages)
    : place_(stage_place(world.rank(), world.size(), stages)),
      links_(split_world(std::move(world).release(), stages)),
      silence_max_(kSilenceFactor * links_.group.timeout),
      cancelled_(links_.group.cancelled),
      progress_(links_.group.progress),
      group_(std::move(links_.group)) {
  const int last_first = (place_.stages - 1) * place_.ranks;
  if (links_.previous) {
    in_ = links_.previous;
    in_rank_ = place_.world_rank() - place_.ranks;
  } else if (links_.choices) {
    in_ = links_.choices;
    in_rank_ = last_first;
  }
  if (links_.next) {
    out_ = links_.next;
    out_rank_ = place_.world_rank() + place_.ranks;
  } else if (links_.choices) {
    out_ = links_.choices;
    out_rank_ = 0;
  }
}

void Pipeline::set_limits(const Limits& limits) {
  if (out_) sender_.emplace(*out_);
  if (!in_) return;
  // Rank 0 has room for everything in flight, so that the last stage never waits for it.
  const int messages = is_leader() ? limits.in_flight_max : 1;
  const size_t bytes = is_leader() ? limits.result_bytes_max : limits.work_bytes_max;
  receiver_.emplace(*in_, in_rank_, static_cast<size_t>(messages), bytes);
}

Status Pipeline::poll() {
  (void)TRY(move());
  return Ok{};
}

Result<bool> Pipeline::move() {
  bool has_moved = sender_ && sender_->poll();
  if (receiver_ && TRY(receiver_->poll())) has_moved = true;
  return has_moved;
}

Status Pipeline::check() const {
  const bool is_sending = sender_ && !sender_->is_idle();
  if (in_) TRY(in_->health());
  if (out_ && (is_sending || is_leader())) TRY(out_->health());
  if (cancelled_ && cancelled_->load(std::memory_order_relaxed)) {
    return Error{ErrorCode::kCancelled, "the wait for another stage was cancelled"};
  }
  return Ok{};
}

Status Pipeline::pause(IdleWait& idle, Link* link) const {
  return idle.pause(link, [this] { return check(); });
}

Error Pipeline::silent(int rank, const char* what) const {
  return {ErrorCode::kTimeout,
          fmt::format("rank {}: no {} within {} ms", rank, what, silence_max_.count())};
}

Status Pipeline::send(std::vector<std::byte>& message) {
  LOCKSTEP_CHECK(can_send());
  TRY(flush());
  sender_->send(message);
  return poll();
}

Status Pipeline::flush() {
  if (!sender_) return Ok{};
  IdleWait idle(kResultSleep);
  while (!sender_->is_idle()) {
    if (TRY(move())) {
      idle.restart();
      continue;
    }
    if (idle.silence() > silence_max_) return silent(out_rank_, "room for a message");
    if (progress_) progress_->set(out_rank_);
    TRY(pause(idle, nullptr));
  }
  if (progress_) progress_->set(Progress::kComputing);
  return Ok{};
}

Status Pipeline::wait_for_work() {
  IdleWait idle(kIdleSleep);
  if (progress_) progress_->set(Progress::kIdle);
  while (!has_message()) {
    if (TRY(move())) {
      idle.restart();
    } else {
      const bool is_sending = sender_ && !sender_->is_idle();
      if (is_sending && idle.silence() > silence_max_) {
        return silent(out_rank_, "room for a message");
      }
      TRY(pause(idle, is_sending ? nullptr : in_));
    }
  }
  if (progress_) progress_->set(Progress::kComputing);
  return Ok{};
}

Status Pipeline::wait_for_result(const std::function<bool()>& is_interrupted) {
  IdleWait idle(kResultSleep);
  if (progress_) progress_->set(in_rank_);
  while (!has_message() && !is_interrupted()) {
    if (TRY(move())) {
      idle.restart();
      continue;
    }
    if (idle.silence() > silence_max_) return silent(in_rank_, "choices");
    TRY(pause(idle, sender_->is_idle() ? in_ : nullptr));
  }
  if (progress_) progress_->set(Progress::kComputing);
  return Ok{};
}

}  // namespace lockstep
