#include "server/request/housekeeper.h"

#include <algorithm>
#include <utility>

#include "access/thrown_error.h"
#include "base/log.h"

namespace lockstep {
namespace {

// Work that throws is dropped together with its reply, which then answers with an error.
void perform(const std::function<void()>& work) {
  if (const auto error = thrown_by(work)) log_warn("an answer is dropped: {}", error->message);
}

}  // namespace

Housekeeper::Housekeeper(std::chrono::milliseconds tick)
    : tick_(tick), thread_([this] { run(); }) {}

Housekeeper::~Housekeeper() {
  {
    std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void Housekeeper::run_soon(std::function<void()> work) {
  {
    std::lock_guard lock(mutex_);
    work_.push_back(std::move(work));
  }
  changed_.notify_one();
}

void Housekeeper::watch(std::weak_ptr<Watched> watched) {
  std::lock_guard lock(mutex_);
  watched_.push_back(std::move(watched));
}

void Housekeeper::run() {
  Clock::time_point next_tick = Clock::now() + tick_;
  std::unique_lock lock(mutex_);
  while (!is_stopping_ || !work_.empty()) {
    changed_.wait_until(lock, next_tick, [&] { return is_stopping_ || !work_.empty(); });
    const auto work = std::exchange(work_, {});
    std::vector<std::weak_ptr<Watched>> due;
    if (Clock::now() >= next_tick) {
      next_tick = Clock::now() + tick_;
      std::erase_if(watched_, [](const auto& watched) { return watched.expired(); });
      due = watched_;
    }
    lock.unlock();
    for (const auto& item : work) perform(item);
    for (const auto& weak : due) {
      const auto watched = weak.lock();
      if (watched != nullptr) perform([&] { watched->on_tick(Clock::now()); });
    }
    lock.lock();
  }
}

}  // namespace lockstep
