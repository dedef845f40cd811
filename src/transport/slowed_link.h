// SlowedLink: makes any link behave like one over a slower network. Each frame begins with a line
// that holds the time at which the sender posted it; the receiver sees the frame no earlier than
// `delay` after its last bit would have left a line of `gbit_s`. Delays to several peers overlap,
// nothing sleeps for them. Both ends read the same steady clock: for links within one machine.
// Threads as for Link.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "transport/frame.h"
#include "transport/link.h"
#include "transport/link_options.h"

namespace lockstep {

class SlowedLink final : public Link {
 public:
  using Clock = std::chrono::steady_clock;

  struct Options {
    std::chrono::microseconds delay{0};
    double gbit_s = 0;  // 0: not limited
    int peer = 0;       // its rank, for messages
  };

  // Both ends of a link must be slowed, with the same options.
  SlowedLink(std::unique_ptr<Link> link, const Options& options);

  size_t frame_bytes_max() const override { return link_->frame_bytes_max() - kStampBytes; }
  std::span<std::byte> acquire(size_t bytes) override;
  void post() override;
  bool flush() override { return link_->flush(); }
  std::span<const std::byte> peek() override;
  void release() override;
  void wait_readable(std::chrono::microseconds at_most) override;
  Status health() const override;

 private:
  // A whole cache line, so that payloads stay 64-byte aligned.
  static constexpr size_t kStampBytes = kFrameAlignment;

  bool has_arrived(Clock::time_point now);
  void schedule(std::span<const std::byte> frame);

  std::unique_ptr<Link> link_;
  Options options_;
  double ns_per_byte_;
  std::byte* stamp_ = nullptr;  // of the last acquired frame

  Clock::time_point line_free_{};         // when the previous frame's last bit left the line
  Clock::time_point due_{};               // of the held frame
  std::span<const std::byte> scheduled_;  // the frame whose due_ is known; empty: none
  bool is_due_ = false;
  Status state_ = Ok{};
};

// The link itself, or slowed if the options ask for it.
std::unique_ptr<Link> slow_down(std::unique_ptr<Link> link, const LinkOptions& options, int peer);

}  // namespace lockstep
