#include "server/request_workers.h"

#include <utility>

namespace lockstep {

RequestWorkers::RequestWorkers() {
  for (int i = 0; i < kThreads; ++i) threads_.emplace_back([this] { work(); });
}

RequestWorkers::~RequestWorkers() {
  {
    std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

bool RequestWorkers::run(std::function<void()> work) {
  {
    std::lock_guard lock(mutex_);
    if (waiting_.size() >= kWaitingMax) return false;
    waiting_.push_back(std::move(work));
  }
  changed_.notify_one();
  return true;
}

void RequestWorkers::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    // Ends: the destructor wakes it. Idle threads cost nothing.
    changed_.wait(lock, [this] { return is_stopping_ || !waiting_.empty(); });
    if (is_stopping_) return;
    std::function<void()> next = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    next();
    next = nullptr;  // what it holds goes before the lock is taken
    lock.lock();
  }
}

}  // namespace lockstep
