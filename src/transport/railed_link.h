// RailedLink: several links to one peer used as one. Frames go over the rails in turn, skipping a
// full rail; each frame travels whole on one rail and begins with a line that holds its number,
// from which the receiver restores the order. All rails are of one kind, and rail i of one end is
// rail i of the other. Losing a rail loses the link. Threads as for Link.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "transport/frame.h"
#include "transport/link.h"
#include "transport/link_options.h"

namespace lockstep {

class RailedLink final : public Link {
 public:
  // `peer` is its rank, for messages.
  RailedLink(std::vector<std::unique_ptr<Link>> rails, int peer);
  ~RailedLink() override;

  size_t frame_bytes_max() const override { return frame_bytes_max_; }
  std::span<std::byte> acquire(size_t bytes) override;
  void post() override;
  bool flush() override;
  std::span<const std::byte> peek() override;
  void release() override;
  void wait_readable(std::chrono::microseconds at_most) override;
  Status health() const override;

 private:
  using Clock = std::chrono::steady_clock;

  // A whole cache line, so that payloads stay 64-byte aligned.
  static constexpr size_t kNumberBytes = kFrameAlignment;

  struct Rail {
    std::unique_ptr<Link> link;
    std::span<const std::byte> head;  // its oldest frame; empty: none known
    uint64_t number = 0;              // of that frame
  };

  size_t turn(size_t after) const { return after + 1 == rails_.size() ? 0 : after + 1; }
  bool look_at(Rail& rail);
  void break_link(ErrorCode code, const char* what);
  void notice_loss();

  std::vector<Rail> rails_;
  int peer_;
  size_t frame_bytes_max_;

  size_t send_turn_ = 0;
  size_t acquired_rail_ = 0;
  std::byte* number_ = nullptr;  // of the last acquired frame
  uint64_t send_number_ = 0;

  size_t receive_turn_ = 0;
  uint64_t receive_number_ = 0;
  bool is_held_ = false;  // rails_[receive_turn_].head is the peeked frame

  std::optional<Clock::time_point> lost_since_;
  Status state_ = Ok{};
};

// Joins all rails into one link, each slowed if the options ask for it.
std::unique_ptr<Link> join_rails(std::vector<std::unique_ptr<Link>> rails,
                                 const LinkOptions& options, int peer);

}  // namespace lockstep
