// RequestWorkers: threads that parse requests and make prompts (JSON, template, tokenizer), so that
// a long prompt blocks neither the event loop nor a short prompt. Each job has a budget of
// processor time and can be cancelled (base/threads/work.h); callers take turns, and none gets all
// threads. A node's server and a router each have their own. Any thread may call it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "access/api_error.h"
#include "base/threads/work.h"

namespace lockstep {

struct RequestJob {
  uint64_t caller = 0;  // HttpReply::caller()
  std::function<void()> run;
  // Called on the same thread if `run` threw (out of memory, or a library failed).
  std::function<void(const ApiError&)> on_failure;
};

class RequestWorkers {
 public:
  using Clock = std::chrono::steady_clock;

  static constexpr size_t kWaitingMax = 256;
  // Jobs of one caller, so that no caller can fill the queue.
  static constexpr size_t kWaitingOfCallerMax = kWaitingMax / 4;
  // Limit per job. Requests within the size limits take up to some 4 s, twice that on a slow
  // machine; only input made to be slow takes longer.
  static constexpr std::chrono::milliseconds kProcessorTimeMax{10'000};
  // With three, a caller gets two while one is reserved for the others. More than the maximum would
  // only compete with the ranks of this machine.
  static constexpr int kThreadsMin = 3;
  static constexpr int kThreadsMax = 16;
  // Half of the machine's hardware threads, within the bounds above.
  static int thread_count(int hardware_threads);

  explicit RequestWorkers(int threads);
  // Cancels running jobs, drops waiting ones, and joins the threads.
  ~RequestWorkers();

  // The job's work, for cancel(); null: kWaitingMax jobs already wait, or
  // kWaitingOfCallerMax of this caller.
  std::shared_ptr<const Work> start(RequestJob job);
  // Drops the job if it has not begun, else makes its next check fail. Does nothing if it has
  // ended.
  void cancel(const std::shared_ptr<const Work>& work);

  int threads() const { return static_cast<int>(threads_.size()); }
  size_t waiting() const;
  // How long the oldest running job has run; 0: none runs.
  Clock::duration oldest_busy(Clock::time_point now) const;

 private:
  struct Job {
    RequestJob asked;
    std::shared_ptr<Work> work;
  };
  struct Caller {
    std::deque<Job> waiting;
    int running = 0;
  };
  struct Running {
    Clock::time_point since;
    std::shared_ptr<Work> work;
    uint64_t caller;
  };
  using Callers = std::map<uint64_t, Caller>;

  void work(size_t thread);
  // The caller whose turn is next and who may use one more thread; end(): none.
  Callers::iterator next_caller();
  Job take(Callers::iterator caller);
  void forget_if_idle(uint64_t caller);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool is_stopping_ = false;
  size_t waiting_ = 0;
  Callers callers_;                   // those with a waiting or running job
  uint64_t last_caller_ = 0;          // had the last turn; turns follow the order of the map
  std::vector<Running> running_;      // by thread; no work: it is idle
  std::vector<std::thread> threads_;  // last: they use all of the above
};

}  // namespace lockstep
