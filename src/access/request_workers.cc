#include "access/request_workers.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "access/thrown_error.h"
#include "base/process/free_memory.h"

namespace lockstep {
namespace {

// A longer job may have used much memory, hundreds of MiB at worst, which the C library would not
// return to the system.
constexpr std::chrono::milliseconds kShortJob{50};

// An exception of a job fails its request and nothing else.
void perform(const RequestJob& job) {
  const auto error = thrown_by(job.run);
  if (!error || !job.on_failure) return;
  // The report may fail for the same reason; the dropped reply then answers with an error itself.
  [[maybe_unused]] const auto again = thrown_by([&] { job.on_failure(*error); });
}

}  // namespace

int RequestWorkers::thread_count(int hardware_threads) {
  return std::clamp(hardware_threads / 2, kThreadsMin, kThreadsMax);
}

RequestWorkers::RequestWorkers(int threads) : running_(static_cast<size_t>(threads)) {
  for (size_t i = 0; i < running_.size(); ++i) threads_.emplace_back([this, i] { work(i); });
}

RequestWorkers::~RequestWorkers() {
  {
    std::lock_guard lock(mutex_);
    is_stopping_ = true;
    for (const Running& running : running_) {
      if (running.work != nullptr) running.work->cancel();
    }
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

std::shared_ptr<const Work> RequestWorkers::start(RequestJob job) {
  auto work = std::make_shared<Work>(kProcessorTimeMax);
  {
    std::lock_guard lock(mutex_);
    if (waiting_ >= kWaitingMax) return nullptr;
    std::deque<Job>& its = callers_[job.caller].waiting;
    if (its.size() >= kWaitingOfCallerMax) return nullptr;
    its.push_back({std::move(job), work});
    ++waiting_;  // last, because the lines above may throw
  }
  changed_.notify_one();
  return work;
}

void RequestWorkers::cancel(const std::shared_ptr<const Work>& work) {
  std::optional<Job> dropped;  // destroyed after the lock is released
  std::lock_guard lock(mutex_);
  for (const Running& running : running_) {
    if (running.work != nullptr && running.work == work) return running.work->cancel();
  }
  for (auto& [caller, its] : callers_) {
    const auto job = std::find_if(its.waiting.begin(), its.waiting.end(),
                                  [&](const Job& one) { return one.work == work; });
    if (job == its.waiting.end()) continue;
    dropped = std::move(*job);
    its.waiting.erase(job);
    --waiting_;
    return forget_if_idle(caller);
  }
}

size_t RequestWorkers::waiting() const {
  std::lock_guard lock(mutex_);
  return waiting_;
}

RequestWorkers::Clock::duration RequestWorkers::oldest_busy(Clock::time_point now) const {
  std::lock_guard lock(mutex_);
  Clock::duration oldest{};
  for (const Running& running : running_) {
    if (running.work != nullptr) oldest = std::max(oldest, now - running.since);
  }
  return oldest;
}

RequestWorkers::Callers::iterator RequestWorkers::next_caller() {
  const int running_max = std::max(1, static_cast<int>(running_.size()) - 1);
  const auto may_run = [&](const auto& caller) {
    return !caller.second.waiting.empty() && caller.second.running < running_max;
  };
  const auto behind = callers_.upper_bound(last_caller_);
  const auto next = std::find_if(behind, callers_.end(), may_run);
  if (next != callers_.end()) return next;
  const auto first = std::find_if(callers_.begin(), behind, may_run);
  return first != behind ? first : callers_.end();
}

RequestWorkers::Job RequestWorkers::take(Callers::iterator caller) {
  Job job = std::move(caller->second.waiting.front());
  caller->second.waiting.pop_front();
  ++caller->second.running;
  --waiting_;
  last_caller_ = caller->first;
  return job;
}

void RequestWorkers::forget_if_idle(uint64_t caller) {
  const auto found = callers_.find(caller);
  if (found->second.running == 0 && found->second.waiting.empty()) callers_.erase(found);
}

void RequestWorkers::work(size_t thread) {
  std::unique_lock lock(mutex_);
  while (true) {
    Callers::iterator caller = callers_.end();
    // No deadline: the destructor wakes it. Idle threads cost nothing.
    changed_.wait(lock, [&] { return is_stopping_ || (caller = next_caller()) != callers_.end(); });
    if (is_stopping_) return;
    std::optional<Job> job = take(caller);
    running_[thread] = {Clock::now(), job->work, job->asked.caller};
    if (next_caller() != callers_.end()) changed_.notify_one();
    lock.unlock();
    {
      Work::Scope scope(*job->work);
      perform(job->asked);
    }
    job.reset();  // destroyed before the lock is taken
    if (Clock::now() - running_[thread].since > kShortJob) return_free_memory();
    lock.lock();
    const uint64_t done = running_[thread].caller;
    running_[thread].work = nullptr;
    --callers_.find(done)->second.running;
    forget_if_idle(done);
  }
}

}  // namespace lockstep
