#include "transport/railed_link.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "base/check.h"
#include "transport/slowed_link.h"

namespace lockstep {
namespace {

// A peer that ends closes its rails one after the other, and its last frames may still arrive on
// the others. After this time without a rail the link is lost.
constexpr std::chrono::milliseconds kLossGrace{20};
// The next frame is expected on one rail; the others are checked this often.
constexpr std::chrono::milliseconds kSleepMax{10};

}  // namespace

RailedLink::RailedLink(std::vector<std::unique_ptr<Link>> rails, int peer) : peer_(peer) {
  LOCKSTEP_CHECK(!rails.empty());
  frame_bytes_max_ = rails.front()->frame_bytes_max() - kNumberBytes;
  for (auto& link : rails) {
    frame_bytes_max_ = std::min(frame_bytes_max_, link->frame_bytes_max() - kNumberBytes);
    rails_.push_back({.link = std::move(link), .head = {}, .number = 0});
  }
}

// Posted frames leave on all rails before the peer sees the first one close.
RailedLink::~RailedLink() {
  flush();
}

std::span<std::byte> RailedLink::acquire(size_t bytes) {
  LOCKSTEP_CHECK(bytes > 0 && bytes <= frame_bytes_max_);
  size_t rail = send_turn_;
  do {
    const auto frame = rails_[rail].link->acquire(bytes + kNumberBytes);
    if (!frame.empty()) {
      acquired_rail_ = rail;
      number_ = frame.data();
      return frame.subspan(kNumberBytes);
    }
    rail = turn(rail);
  } while (rail != send_turn_);
  notice_loss();
  return {};
}

void RailedLink::post() {
  LOCKSTEP_CHECK(number_ != nullptr);
  std::memset(number_, 0, kNumberBytes);
  std::memcpy(number_, &send_number_, sizeof(send_number_));
  number_ = nullptr;
  ++send_number_;
  rails_[acquired_rail_].link->post();
  send_turn_ = turn(acquired_rail_);
}

bool RailedLink::flush() {
  bool is_flushed = true;
  for (Rail& rail : rails_) is_flushed = rail.link->flush() && is_flushed;
  if (!is_flushed) notice_loss();
  return is_flushed;
}

std::span<const std::byte> RailedLink::peek() {
  if (is_held_) return rails_[receive_turn_].head.subspan(kNumberBytes);
  if (!state_.ok()) return {};
  size_t rail = receive_turn_, known = 0;
  do {
    if (!look_at(rails_[rail])) {
      rail = turn(rail);
      continue;
    }
    ++known;
    if (rails_[rail].number == receive_number_) {
      receive_turn_ = rail;
      is_held_ = true;
      return rails_[rail].head.subspan(kNumberBytes);
    }
    rail = turn(rail);
  } while (rail != receive_turn_);
  if (!state_.ok()) return {};
  if (known == rails_.size()) {
    break_link(ErrorCode::kCorrupt, "a frame is missing on all rails");
  } else {
    notice_loss();
  }
  return {};
}

// Whether the rail has a frame; if so, its number is known.
bool RailedLink::look_at(Rail& rail) {
  if (!rail.head.empty()) return true;
  rail.head = rail.link->peek();
  if (rail.head.empty()) return false;
  if (rail.head.size() > kNumberBytes) {
    std::memcpy(&rail.number, rail.head.data(), sizeof(rail.number));
    if (rail.number >= receive_number_) return true;
  }
  rail.head = {};
  break_link(ErrorCode::kCorrupt, "a frame on one of several rails has an invalid number");
  return false;
}

void RailedLink::release() {
  LOCKSTEP_CHECK(is_held_);
  Rail& rail = rails_[receive_turn_];
  rail.head = {};
  is_held_ = false;
  ++receive_number_;
  receive_turn_ = turn(receive_turn_);
  rail.link->release();
}

// A sender that keeps up takes its rails in turn, so a sleeper knows where to wait.
void RailedLink::wait_readable(std::chrono::microseconds at_most) {
  if (!peek().empty() || !state_.ok()) return;
  rails_[receive_turn_].link->wait_readable(
      std::min<std::chrono::microseconds>(at_most, kSleepMax));
}

Status RailedLink::health() const {
  return state_;
}

void RailedLink::break_link(ErrorCode code, const char* what) {
  if (state_.ok()) state_ = peer_error(code, peer_, what);
}

void RailedLink::notice_loss() {
  if (!state_.ok()) return;
  size_t lost_count = 0;
  Error first{ErrorCode::kPeerLost, ""};
  for (size_t rail = 0; rail < rails_.size(); ++rail) {
    Status status = rails_[rail].link->health();
    if (status.ok()) continue;
    if (lost_count++ > 0) continue;
    first = std::move(status.error());
    first.message +=
        " (rail " + std::to_string(rail + 1) + " of " + std::to_string(rails_.size()) + ")";
  }
  if (lost_count == 0) return;
  const Clock::time_point now = Clock::now();
  if (!lost_since_) lost_since_ = now;
  const bool is_over = first.code != ErrorCode::kPeerLost || lost_count == rails_.size() ||
                       now - *lost_since_ > kLossGrace;
  if (is_over) state_ = std::move(first);
}

std::unique_ptr<Link> join_rails(std::vector<std::unique_ptr<Link>> rails,
                                 const LinkOptions& options, int peer) {
  for (auto& rail : rails) rail = slow_down(std::move(rail), options, peer);
  if (rails.size() == 1) return std::move(rails.front());
  return std::make_unique<RailedLink>(std::move(rails), peer);
}

}  // namespace lockstep
