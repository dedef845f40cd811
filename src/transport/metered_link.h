// MeteredLink: any link, with a count of the bytes it carries. LinkMeter holds that count and the
// latest measurement of the link, for a group's status: the rank's own thread writes it, any thread
// reads it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"
#include "transport/link.h"

namespace lockstep {

// One end's view of a link to `peer`.
struct LinkReading {
  int32_t peer = 0;
  uint64_t bytes = 0;  // of frames in both directions, since the link was opened
  // The latest measurement: one way with a short frame, and for long frames. 0: none since then.
  uint32_t p50_ns = 0;
  uint32_t p99_ns = 0;
  uint32_t bytes_per_us = 0;

  bool operator==(const LinkReading&) const = default;
};

class LinkMeter {
 public:
  // Only one thread adds.
  void add(size_t bytes) {
    bytes_.store(bytes_.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
  }
  void measured(uint32_t p50_ns, uint32_t p99_ns, uint32_t bytes_per_us) {
    p50_ns_.store(p50_ns, std::memory_order_relaxed);
    p99_ns_.store(p99_ns, std::memory_order_relaxed);
    bytes_per_us_.store(bytes_per_us, std::memory_order_relaxed);
  }
  LinkReading read(int32_t peer) const {
    return {peer, bytes_.load(std::memory_order_relaxed), p50_ns_.load(std::memory_order_relaxed),
            p99_ns_.load(std::memory_order_relaxed), bytes_per_us_.load(std::memory_order_relaxed)};
  }

 private:
  std::atomic<uint64_t> bytes_{0};
  std::atomic<uint32_t> p50_ns_{0}, p99_ns_{0}, bytes_per_us_{0};
};

// One for each rank of the world.
class LinkMeters {
 public:
  explicit LinkMeters(size_t ranks) : meters_(ranks) {}

  size_t size() const { return meters_.size(); }
  LinkMeter& operator[](size_t rank) { return meters_[rank]; }
  const LinkMeter& operator[](size_t rank) const { return meters_[rank]; }

  // While one lives nothing is counted, in the thread of the links: measurements are no traffic.
  class Pause {
   public:
    explicit Pause(std::shared_ptr<LinkMeters> meters) : meters_(std::move(meters)) {
      if (meters_) ++meters_->pauses_;
    }
    ~Pause() {
      if (meters_) --meters_->pauses_;
    }
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    const std::shared_ptr<LinkMeters> meters_;
  };
  bool is_paused() const { return pauses_ > 0; }

 private:
  std::vector<LinkMeter> meters_;
  int pauses_ = 0;
};

class MeteredLink final : public Link {
 public:
  // Counts at meters[peer].
  MeteredLink(std::unique_ptr<Link> link, std::shared_ptr<LinkMeters> meters, size_t peer)
      : link_(std::move(link)), meters_(std::move(meters)), meter_((*meters_)[peer]) {}

  size_t frame_bytes_max() const override { return link_->frame_bytes_max(); }
  std::span<std::byte> acquire(size_t bytes) override {
    const std::span<std::byte> frame = link_->acquire(bytes);
    acquired_ = frame.size();
    return frame;
  }
  void post() override {
    count(acquired_);
    link_->post();
  }
  bool flush() override { return link_->flush(); }
  std::span<const std::byte> peek() override {
    const std::span<const std::byte> frame = link_->peek();
    peeked_ = frame.size();
    return frame;
  }
  void release() override {
    count(peeked_);
    link_->release();
  }
  void wait_readable(std::chrono::microseconds at_most) override { link_->wait_readable(at_most); }
  Status health() const override { return link_->health(); }

 private:
  void count(size_t bytes) {
    if (!meters_->is_paused()) meter_.add(bytes);
  }

  const std::unique_ptr<Link> link_;
  const std::shared_ptr<LinkMeters> meters_;
  LinkMeter& meter_;  // one of meters_
  size_t acquired_ = 0;
  size_t peeked_ = 0;
};

}  // namespace lockstep
