#include "node/worker/disk_thread.h"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include "base/log.h"
#include "base/threads/guarded.h"

namespace lockstep {
namespace {

constexpr std::chrono::seconds kEndMax{2};

}  // namespace

struct DiskThread::Shared {
  std::mutex mutex;  // guards what follows
  std::condition_variable changed;
  std::deque<Job> jobs;
  size_t threads_max = 1;
  size_t threads = 0;
  size_t idle = 0;  // threads waiting for a job
  bool is_closed = false;
};

DiskThread::DiskThread(size_t threads_max) : shared_(std::make_shared<Shared>()) {
  shared_->threads_max = threads_max;
}

DiskThread::~DiskThread() {
  std::deque<Job> dropped;
  std::unique_lock lock(shared_->mutex);
  shared_->is_closed = true;
  dropped.swap(shared_->jobs);
  shared_->changed.notify_all();
  shared_->changed.wait_for(lock, kEndMax, [this] { return shared_->threads == 0; });
}

bool DiskThread::post(Job job) {
  const std::lock_guard lock(shared_->mutex);
  if (shared_->jobs.size() >= kJobsMax) return false;
  const bool needs_thread = shared_->idle <= shared_->jobs.size();
  const bool may_start = shared_->threads < shared_->threads_max;
  if (needs_thread && may_start && !add_thread(shared_) && shared_->threads == 0) return false;
  shared_->jobs.push_back(std::move(job));
  shared_->changed.notify_all();
  return true;
}

// Detached, since it cannot be joined while a disk hangs; the destructor waits for its end.
bool DiskThread::add_thread(const std::shared_ptr<Shared>& shared) {
  const Status started = guarded([&] { std::thread([shared] { run(shared); }).detach(); });
  if (started.ok()) ++shared->threads;
  return started.ok();
}

void DiskThread::run(const std::shared_ptr<Shared>& shared) {
  std::unique_lock lock(shared->mutex);
  while (!shared->is_closed) {
    if (shared->jobs.empty()) {
      if (shared->idle > 0) break;  // one waiting thread is enough
      ++shared->idle;
      shared->changed.wait(lock, [&] { return shared->is_closed || !shared->jobs.empty(); });
      --shared->idle;
      continue;
    }
    Job job = std::move(shared->jobs.front());
    shared->jobs.pop_front();
    lock.unlock();
    Then then;
    Status done = guarded([&] { then = job(); });
    job = nullptr;
    lock.lock();
    if (done.ok() && then && !shared->is_closed) done = guarded(then);
    if (!done.ok()) log_error("node: a job on the disk was lost: {}", done.error().message);
  }
  --shared->threads;
  shared->changed.notify_all();
}

}  // namespace lockstep
