#include "node/requests/request_decoder.h"

#include "base/threads/guarded.h"

namespace lockstep {

RequestDecoder::RequestDecoder(EventLoop& loop, DecodeRequest decode, Done done)
    : loop_(loop),
      decode_(std::move(decode)),
      done_(std::make_shared<const Done>(std::move(done))) {}

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
    bytes_ += payload.size();
    waiting_.push_back({id, std::move(payload)});
    changed_.notify_one();
  }
  if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
  return true;
}

void RequestDecoder::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return is_over_ || !waiting_.empty(); });
    if (is_over_) return;
    const Waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    // Shared, since work of a loop is copied.
    const auto decoded = std::make_shared<DecodedRequest>(
        guarded([&]() -> DecodedRequest { return decode_(next.payload); }));
    loop_.post([done = std::weak_ptr(done_), id = next.id, decoded] {
      if (const auto call = done.lock()) (*call)(id, std::move(*decoded));
    });
    lock.lock();
    bytes_ -= next.payload.size();
  }
}

}  // namespace lockstep
