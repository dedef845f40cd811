#include "server/request/slow_answer.h"

#include <algorithm>
#include <utility>

#include "base/threads/guarded.h"
#include "base/threads/work.h"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kWorkLook{50};

}  // namespace

// Null: no thread can be started.
std::shared_ptr<SlowAnswer::Run> SlowAnswer::current(std::function<std::string()> make) {
  const std::lock_guard lock(mutex_);
  if (run_ != nullptr) {
    const std::lock_guard run_lock(run_->mutex);
    if (!run_->answer) return run_;
  }
  run_ = std::make_shared<Run>();
  const bool is_posted = thread_.post([run = run_, make = std::move(make)]() -> DiskThread::Then {
    const auto work = [&]() -> Result<std::string> { return make(); };
    auto answer = guarded(work);
    const std::lock_guard run_lock(run->mutex);
    run->answer = std::move(answer);
    run->changed.notify_all();
    return {};
  });
  if (!is_posted) run_ = nullptr;
  return run_;
}

Result<std::string> SlowAnswer::get(std::function<std::string()> make,
                                    std::chrono::milliseconds limit) {
  const std::shared_ptr<Run> run = current(std::move(make));
  if (run == nullptr) return Error{ErrorCode::kExhausted, "no thread can be started"};
  const auto deadline = Clock::now() + limit;
  std::unique_lock lock(run->mutex);
  while (!run->answer) {
    TRY(Work::check());
    const auto now = Clock::now();
    if (now >= deadline) return Error{ErrorCode::kTimeout, "it takes longer than usual"};
    run->changed.wait_until(lock, std::min<Clock::time_point>(deadline, now + kWorkLook));
  }
  return *run->answer;
}

}  // namespace lockstep
