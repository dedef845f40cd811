// PipeLink: a Link through queues in this process, as simple as possible: the reference for the
// real links.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "transport/form/local_links.h"
#include "transport/frame.h"

namespace lockstep {

inline constexpr std::chrono::milliseconds kLong{20'000};  // far more than any link takes

struct Pipe {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::vector<std::byte>> frames;
  bool is_closed = false;
};

class PipeLink final : public Link {
 public:
  static constexpr size_t kFramesMax = 4;

  PipeLink(std::shared_ptr<Pipe> out, std::shared_ptr<Pipe> in, int peer)
      : out_(std::move(out)), in_(std::move(in)), peer_(peer) {}
  ~PipeLink() override {
    std::lock_guard lock(out_->mutex);
    out_->is_closed = true;
    out_->changed.notify_all();
  }

  size_t frame_bytes_max() const override { return kFrameBytesMax; }
  std::span<std::byte> acquire(size_t bytes) override {
    std::lock_guard lock(out_->mutex);
    if (out_->frames.size() == kFramesMax) return {};
    outgoing_.resize(bytes);
    return outgoing_;
  }
  void post() override {
    std::lock_guard lock(out_->mutex);
    out_->frames.push_back(std::move(outgoing_));
    out_->changed.notify_all();
  }
  bool flush() override { return true; }
  std::span<const std::byte> peek() override {
    std::lock_guard lock(in_->mutex);
    if (in_->frames.empty()) return {};
    return in_->frames.front();
  }
  void release() override {
    std::lock_guard lock(in_->mutex);
    in_->frames.pop_front();
  }
  void wait_readable(std::chrono::microseconds at_most) override {
    std::unique_lock lock(in_->mutex);
    in_->changed.wait_for(lock, at_most, [&] { return !in_->frames.empty() || in_->is_closed; });
  }
  Status health() const override {
    std::lock_guard lock(in_->mutex);
    if (!in_->is_closed || !in_->frames.empty()) return Ok{};
    return peer_error(ErrorCode::kPeerLost, peer_, "it closed the pipe");
  }

 private:
  std::shared_ptr<Pipe> out_;
  std::shared_ptr<Pipe> in_;
  int peer_;
  std::vector<std::byte> outgoing_;
};

inline LocalLinks open_pipe_links(int size) {
  LocalLinks links(static_cast<size_t>(size));
  for (auto& row : links) row.resize(static_cast<size_t>(size));
  for (int low = 0; low < size; ++low) {
    for (int high = low + 1; high < size; ++high) {
      auto up = std::make_shared<Pipe>(), down = std::make_shared<Pipe>();
      links[low][high] = std::make_unique<PipeLink>(up, down, high);
      links[high][low] = std::make_unique<PipeLink>(down, up, low);
    }
  }
  return links;
}

inline LocalLinks open_links(const LinkOptions& options, int size) {
  return std::move(open_local_links(options, size).value());
}

// The links over which every test of links and groups runs.
struct NamedLinks {
  const char* name;
  LocalLinks (*open)(int size);
};

inline constexpr NamedLinks kAllLinks[] = {
    {"pipe", open_pipe_links},
    {"shm", [](int size) { return open_links({.kind = LinkKind::kShm}, size); }},
    {"tcp", [](int size) { return open_links({.kind = LinkKind::kTcp}, size); }},
    {"encrypted tcp",
     [](int size) { return open_links({.kind = LinkKind::kTcp, .encrypts = true}, size); }},
    {"railed tcp", [](int size) { return open_links({.kind = LinkKind::kTcp, .rails = 3}, size); }},
    {"slowed shm",
     [](int size) {
       return open_links({.kind = LinkKind::kShm, .delay_us = 5, .gbit_s = 100}, size);
     }},
};

}  // namespace lockstep
