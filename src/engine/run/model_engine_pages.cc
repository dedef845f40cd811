// A ModelEngine rank's work with pages of state on its disk.
#include <algorithm>
#include <chrono>
#include <thread>

#include "base/log.h"
#include "engine/run/model_engine.h"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// Limits at a stop: for saving unsaved pages, and for writes on their way to the disk.
constexpr milliseconds kSaveRestMax{2'000};
constexpr milliseconds kFlushMax{1'000};

// After another rank had no room for a page: until the next try, doubled on each failure.
constexpr milliseconds kSaveRetryMin{50};
constexpr int kRetryDoublingsMax = 8;  // some 13 s
// At a stop there is no time to wait that long.
constexpr milliseconds kSaveRestRetry{20};

}  // namespace

Result<PageOutcome> ModelEngine::move_pages(const PageOutcome& before) {
  const PageOutcome own = TRY(mover_->move(step_.pages, pipeline_->group()));
  return pipeline_->place().is_first() ? own : least_of(own, before);
}

Status ModelEngine::complete(const StepResult& result, const EventSink& events) {
  const PageOutcome moved = result.pages.value_or(PageOutcome{});
  if (moved.lacks_store() && !std::exchange(has_warned_, true)) {
    log_warn("pages of state are not kept on disk: a rank of the group has no store for them");
  }
  TRY(scheduler_->complete(result.choices, result.hidden, events, moved, result.drafted));
  count_drafts();
  if (moved.saved > 0) failed_saves_ = 0;
  if (!scheduler_->take_save_failed()) return Ok{};
  save_again_ = Clock::now() + kSaveRetryMin * (1 << std::min(failed_saves_++, kRetryDoublingsMax));
  return Ok{};
}

Result<bool> ModelEngine::begin_save(const EventSink& events) {
  if (Clock::now() < save_again_ || !scheduler_->plan_save(step_)) return false;
  TRY(carry_out({}, events));
  return true;
}

// If this rank's own store has no room, its thread wakes the inbox later.
void ModelEngine::idle() {
  set_progress(Progress::kIdle);
  const auto now = Clock::now();
  std::optional<Clock::time_point> until = link_turns_->next();
  if (save_again_ > now) until = std::min(save_again_, until.value_or(save_again_));
  if (!until) return inbox_.wait();
  inbox_.wait_for(std::max(milliseconds(0), std::chrono::ceil<milliseconds>(*until - now)));
}

Status ModelEngine::save_rest(const EventSink& events) {
  const auto end = Clock::now() + kSaveRestMax;
  bool has_flushed = false;  // without a page saved since
  while (scheduler_->has_unsaved() && Clock::now() < end) {
    save_again_ = {};
    const int failed = failed_saves_;
    if (TRY(begin_save(events))) {
      has_flushed = false;
    } else {
      const auto left = std::chrono::ceil<milliseconds>(end - Clock::now());
      if (std::exchange(has_flushed, true) || !flush_stores(left).ok()) break;
    }
    while (scheduler_->steps_in_flight() > 0) {
      TRY(pipeline_->wait_for_result([] { return false; }));
      TRY(finish_step(events));
    }
    if (failed_saves_ > failed) std::this_thread::sleep_for(kSaveRestRetry);
  }
  return Ok{};
}

Status ModelEngine::flush_stores(milliseconds time) {
  const auto end = Clock::now() + time;
  for (PageStore* store : {store_.get(), state_store_.get()}) {
    const auto left = std::chrono::ceil<milliseconds>(end - Clock::now());
    if (store) TRY(store->flush(std::max(milliseconds(0), left)));
  }
  return Ok{};
}

void ModelEngine::flush_at_stop() {
  if (const Status flushed = flush_stores(kFlushMax); !flushed.ok()) {
    log_warn("not all pages of state were saved: {}", flushed.error().message);
  }
}

}  // namespace lockstep
