#include "node/disk_thread.h"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

namespace lockstep {
namespace {

constexpr std::chrono::seconds kEndMax{2};

}  // namespace

struct DiskThread::Shared {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Job> jobs;
  bool is_closed = false;
  bool is_over = false;
};

DiskThread::DiskThread() : shared_(std::make_shared<Shared>()) {
  // Detached, since it cannot be joined while a disk hangs; the destructor waits for its end.
  std::thread([shared = shared_] { run(shared); }).detach();
}

DiskThread::~DiskThread() {
  std::deque<Job> dropped;
  std::unique_lock lock(shared_->mutex);
  shared_->is_closed = true;
  dropped.swap(shared_->jobs);
  shared_->changed.notify_all();
  shared_->changed.wait_for(lock, kEndMax, [this] { return shared_->is_over; });
}

bool DiskThread::post(Job job) {
  const std::lock_guard lock(shared_->mutex);
  if (shared_->jobs.size() >= kJobsMax) return false;
  shared_->jobs.push_back(std::move(job));
  shared_->changed.notify_all();
  return true;
}

void DiskThread::run(const std::shared_ptr<Shared>& shared) {
  std::unique_lock lock(shared->mutex);
  while (!shared->is_closed) {
    if (shared->jobs.empty()) {
      shared->changed.wait(lock);
      continue;
    }
    Job job = std::move(shared->jobs.front());
    shared->jobs.pop_front();
    lock.unlock();
    Then then = job();
    job = nullptr;
    lock.lock();
    if (then && !shared->is_closed) then();
  }
  shared->is_over = true;
  shared->changed.notify_all();
}

}  // namespace lockstep
