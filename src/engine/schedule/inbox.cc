#include "engine/schedule/inbox.h"

#include <utility>

namespace lockstep {

template <class Change>
void Inbox::change(Change&& apply) {
  {
    std::lock_guard lock(mutex_);
    apply(contents_);
    is_filled_.store(true, std::memory_order_relaxed);
  }
  changed_.notify_one();
}

void Inbox::submit(uint64_t id, MakeRequest make) {
  change([&](Contents& contents) { contents.submitted.push_back({id, std::move(make)}); });
}

void Inbox::cancel(uint64_t id) {
  change([&](Contents& contents) { contents.cancelled.push_back(id); });
}

void Inbox::stop() {
  change([](Contents& contents) { contents.stop = true; });
}

void Inbox::leave() {
  change([](Contents& contents) { contents.leave = true; });
}

void Inbox::wake() {
  change([](Contents&) {});
}

void Inbox::clear() {
  std::lock_guard lock(mutex_);
  contents_ = Contents{.submitted = {}, .cancelled = {}, .stop = contents_.stop};
  is_filled_.store(contents_.stop, std::memory_order_relaxed);
}

Inbox::Contents Inbox::take() {
  if (!is_filled_.load(std::memory_order_relaxed)) return {};
  std::lock_guard lock(mutex_);
  is_filled_.store(contents_.stop || contents_.leave, std::memory_order_relaxed);
  Contents taken = std::exchange(contents_, {});
  contents_.stop = taken.stop;    // stays: a stop is final
  contents_.leave = taken.leave;  // stays until clear()
  return taken;
}

void Inbox::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return is_filled_.load(std::memory_order_relaxed); });
}

void Inbox::wait_for(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, time, [this] { return is_filled_.load(std::memory_order_relaxed); });
}

}  // namespace lockstep
