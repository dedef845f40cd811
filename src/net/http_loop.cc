#include "net/http_loop.h"

#include <boost/asio/post.hpp>
#include <utility>

#include "base/log.h"
#include "base/threads/guarded.h"

namespace lockstep {

// With asio::post alone a later post from another thread could overtake one from the loop's own
// thread.
void HttpLoop::post(std::function<void()> work) {
  std::lock_guard lock(mutex_);
  if (context_ == nullptr) return;
  work_.push_back(std::move(work));
  if (work_.size() > 1) return;
  boost::asio::post(*context_, [self = shared_from_this()] { self->run_posted(); });
}

void HttpLoop::close() {
  std::vector<std::function<void()>> dropped;  // destroyed after the lock: destructors may post
  std::lock_guard lock(mutex_);
  context_ = nullptr;
  dropped.swap(work_);
}

void HttpLoop::run_posted() {
  std::vector<std::function<void()>> work;
  {
    std::lock_guard lock(mutex_);
    work.swap(work_);
  }
  for (auto& item : work) {
    const Status done = guarded(item);  // the others must still run
    if (!done.ok()) log_error("net: posted work threw an exception: {}", done.error().message);
  }
}

}  // namespace lockstep
