#include "node/requests/request_decoder.h"

#include "base/log.h"
#include "base/threads/guarded.h"

namespace lockstep {

RequestDecoder::RequestDecoder(Post post, DecodeRequest decode, Done done)
    : post_(std::move(post)),
      decode_(std::move(decode)),
      done_(std::make_shared<const Done>(std::move(done))) {}

RequestDecoder::RequestDecoder(EventLoop& loop, DecodeRequest decode, Done done)
    : RequestDecoder([&loop](std::function<void()> call) { loop.post(std::move(call)); },
                     std::move(decode), std::move(done)) {}

RequestDecoder::~RequestDecoder() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
    changed_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
}

bool RequestDecoder::add(uint64_t id, std::string payload) {
  {
    const std::lock_guard lock(mutex_);
    if (payload.size() > kBytesMax - bytes_) return false;
    const size_t size = payload.size();
    waiting_.push_back({id, std::move(payload), std::nullopt});
    bytes_ += size;
    changed_.notify_one();
  }
  if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
  return true;
}

void RequestDecoder::work() {
  std::unique_lock lock(mutex_);
  const auto has_work = [this] { return is_over_ || !waiting_.empty(); };
  while (true) {
    if (is_posted_ || decoded_.empty()) {
      changed_.wait(lock, has_work);
    } else {
      changed_.wait_for(lock, kPostAgain, has_work);
    }
    if (is_over_) return;
    if (!waiting_.empty()) decode_next(lock);
    if (!is_posted_ && !decoded_.empty()) post_decoded();
  }
}

void RequestDecoder::decode_next(std::unique_lock<std::mutex>& lock) {
  std::list<Item> next;
  next.splice(next.end(), waiting_, waiting_.begin());
  lock.unlock();
  Item& item = next.front();
  item.decoded.emplace(guarded([&] { return decode_(item.payload); }));
  const size_t size = item.payload.size();
  std::string().swap(item.payload);
  lock.lock();
  bytes_ -= size;
  decoded_.splice(decoded_.end(), next);
}

void RequestDecoder::post_decoded() {
  const Status posted = guarded([this] {
    post_([this, done = std::weak_ptr(done_)] {
      if (!done.expired()) deliver();
    });
  });
  is_posted_ = posted.ok();
}

void RequestDecoder::deliver() {
  std::list<Item> ready;
  {
    const std::lock_guard lock(mutex_);
    is_posted_ = false;
    ready.swap(decoded_);
  }
  const std::weak_ptr alive = done_;
  for (Item& item : ready) {
    const auto call = alive.lock();
    if (!call) return;
    const Status taken = guarded([&] { (*call)(item.id, std::move(*item.decoded)); });
    if (!taken.ok()) log_error("node: a decoded request was lost: {}", taken.error().message);
  }
}

}  // namespace lockstep
