#include "net/http_loop.h"

#include <boost/asio/post.hpp>
#include <utility>

namespace lockstep {

// asio alone would let a post from the loop's own thread be overtaken by a later post from another
// thread.
void HttpLoop::post(std::function<void()> work) {
  std::lock_guard lock(mutex_);
  if (context_ == nullptr) return;
  work_.push_back(std::move(work));
  if (work_.size() > 1) return;
  boost::asio::post(*context_, [self = shared_from_this()] { self->run_posted(); });
}

void HttpLoop::close() {
  std::vector<std::function<void()>> dropped;  // outlives the lock: destructors may post
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
  for (auto& item : work) item();
}

}  // namespace lockstep
