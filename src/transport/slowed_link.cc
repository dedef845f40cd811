#include "transport/slowed_link.h"

#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/threads/wait.h"

namespace lockstep {
namespace {

using std::chrono::nanoseconds;

// The operating system wakes a sleeper up to this late; the rest of a wait is polled.
constexpr std::chrono::microseconds kWakeLate{100};

int64_t to_ns(SlowedLink::Clock::time_point time) {
  return std::chrono::duration_cast<nanoseconds>(time.time_since_epoch()).count();
}

SlowedLink::Clock::time_point from_ns(int64_t ns) {
  return SlowedLink::Clock::time_point(
      std::chrono::duration_cast<SlowedLink::Clock::duration>(nanoseconds(ns)));
}

}  // namespace

SlowedLink::SlowedLink(std::unique_ptr<Link> link, const Options& options)
    : link_(std::move(link)),
      options_(options),
      ns_per_byte_(options.gbit_s > 0 ? 8 / options.gbit_s : 0) {}

std::span<std::byte> SlowedLink::acquire(size_t bytes) {
  const auto frame = link_->acquire(bytes + kStampBytes);
  if (frame.empty()) return {};
  stamp_ = frame.data();
  return frame.subspan(kStampBytes);
}

void SlowedLink::post() {
  LOCKSTEP_CHECK(stamp_ != nullptr);
  std::memset(stamp_, 0, kStampBytes);
  const int64_t now_ns = to_ns(Clock::now());
  std::memcpy(stamp_, &now_ns, sizeof(now_ns));
  stamp_ = nullptr;
  link_->post();
}

std::span<const std::byte> SlowedLink::peek() {
  if (is_due_) return scheduled_.subspan(kStampBytes);
  if (scheduled_.empty()) {
    const auto frame = link_->peek();
    if (frame.empty() || !state_.ok()) return {};
    schedule(frame);
    if (scheduled_.empty()) return {};
  }
  if (!has_arrived(Clock::now())) return {};
  return scheduled_.subspan(kStampBytes);
}

// A frame's place on the line follows from the stamps alone, not from when we check.
void SlowedLink::schedule(std::span<const std::byte> frame) {
  if (frame.size() <= kStampBytes) {
    state_ = peer_error(ErrorCode::kCorrupt, options_.peer,
                        "a frame of a slowed link has no room for its stamp");
    return;
  }
  int64_t posted_ns = 0;
  std::memcpy(&posted_ns, frame.data(), sizeof(posted_ns));
  // Stamps of the future or of long ago are not trusted.
  const Clock::time_point now = Clock::now();
  const auto posted = from_ns(std::clamp<int64_t>(posted_ns, 0, to_ns(now)));
  const double line_ns = ns_per_byte_ * static_cast<double>(frame.size() - kStampBytes);
  line_free_ = std::max(line_free_, posted) + std::chrono::duration_cast<Clock::duration>(
                                                  nanoseconds(static_cast<int64_t>(line_ns)));
  due_ = line_free_ + options_.delay;
  scheduled_ = frame;
}

bool SlowedLink::has_arrived(Clock::time_point now) {
  is_due_ = now >= due_;
  return is_due_;
}

void SlowedLink::release() {
  LOCKSTEP_CHECK(is_due_);
  scheduled_ = {};
  is_due_ = false;
  link_->release();
}

void SlowedLink::wait_readable(std::chrono::microseconds at_most) {
  const Clock::time_point end = Clock::now() + at_most;
  if (!peek().empty() || !state_.ok()) return;
  if (scheduled_.empty()) {
    link_->wait_readable(at_most);
    if (!peek().empty() || scheduled_.empty()) return;
  }
  const Clock::time_point until = std::min(due_, end);
  if (until - Clock::now() > kWakeLate) std::this_thread::sleep_until(until - kWakeLate);
  while (Clock::now() < until) relax_processor();
}

Status SlowedLink::health() const {
  if (!state_.ok()) return state_;
  if (!scheduled_.empty()) return Ok{};  // read the remaining frames first
  return link_->health();
}

std::unique_ptr<Link> slow_down(std::unique_ptr<Link> link, const LinkOptions& options, int peer) {
  if (options.delay_us == 0 && options.gbit_s == 0) return link;
  return std::make_unique<SlowedLink>(
      std::move(link), SlowedLink::Options{.delay = std::chrono::microseconds(options.delay_us),
                                           .gbit_s = options.gbit_s,
                                           .peer = peer});
}

}  // namespace lockstep
