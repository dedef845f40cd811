// Group::broadcast and the idle wait for it. Only the root knows the length: the first frame is the
// length as a little-endian u64, followed by as much data as fits in the piece. Ranks on the way
// relay it; the rest of the data is an exchange of known length.
#include <algorithm>
#include <cstring>
#include <string>

#include "base/check.h"
#include "collective/group/group.h"
#include "collective/sums/idle_wait.h"
#include "collective/sums/peer_wait.h"
#include "transport/frame.h"

namespace lockstep {
namespace {

constexpr size_t kSizeBytes = sizeof(uint64_t);

constexpr std::chrono::milliseconds kSleep{40};  // between two looks at `cancelled`

}  // namespace

Status Group::wait_for(int root) {
  LOCKSTEP_CHECK(root >= 0 && root < size());
  if (!state_.ok()) return state_;
  if (!is_peer(root)) return Ok{};
  if (options_.progress) options_.progress->set(Progress::kIdle);
  Link& link = this->link(plans_->next_to(root));
  IdleWait idle(kSleep);
  const auto look = [&]() -> Status {
    TRY(link.health());
    if (options_.cancelled && options_.cancelled->load(std::memory_order_relaxed)) {
      return Error{ErrorCode::kCancelled, "the wait for the next step was cancelled"};
    }
    return Ok{};
  };
  Status status = Ok{};
  while (status.ok() && link.peek().empty()) status = idle.pause(&link, look);
  if (options_.progress) options_.progress->set(Progress::kComputing);
  return finish(std::move(status));
}

Status Group::broadcast(int root, std::vector<std::byte>& data, size_t bytes_max) {
  LOCKSTEP_CHECK(root >= 0 && root < size());
  if (!state_.ok()) return state_;
  count_exchange();
  const ExchangePlan& plan = plans_->broadcast(root);
  if (is_peer(root)) {
    if (Status status = receive_length(root, plan, data, bytes_max); !status.ok()) {
      return finish(std::move(status));
    }
  } else {
    LOCKSTEP_CHECK(data.size() <= bytes_max);
    const uint64_t total = data.size();
    const size_t first = std::min(data.size(), options_.piece_bytes - kSizeBytes);
    first_frame_.resize(kSizeBytes + first);
    std::memcpy(first_frame_.data(), &total, kSizeBytes);
    if (first > 0) std::memcpy(first_frame_.data() + kSizeBytes, data.data(), first);
    if (Status status = send_length(plan, first_frame_); !status.ok()) {
      return finish(std::move(status));
    }
  }
  return finish(move_rest(plan, data));
}

// Sends the first frame to the ranks that get it from this rank.
Status Group::send_length(const ExchangePlan& plan, std::span<const std::byte> first_frame) {
  PeerWait wait(options_);
  for (const auto& route : plan.routes) {
    if (route.sends.empty()) continue;
    auto frame = link(route.peer).acquire(first_frame.size());
    while (frame.empty()) {
      link(route.peer).flush();
      TRY(wait.pause(0, peer_bit(route.peer)));
      frame = link(route.peer).acquire(first_frame.size());
    }
    std::memcpy(frame.data(), first_frame.data(), first_frame.size());
    link(route.peer).post();
  }
  return Ok{};
}

Status Group::receive_length(int root, const ExchangePlan& plan, std::vector<std::byte>& data,
                             size_t bytes_max) {
  const int peer = plans_->next_to(root);
  PeerWait wait(options_);
  auto frame = link(peer).peek();
  while (frame.empty()) {
    TRY(wait.pause(peer));
    frame = link(peer).peek();
  }
  uint64_t total = 0;
  if (frame.size() >= kSizeBytes) std::memcpy(&total, frame.data(), kSizeBytes);
  const size_t first = std::min<uint64_t>(total, options_.piece_bytes - kSizeBytes);
  if (total > bytes_max || frame.size() != kSizeBytes + first) {
    return peer_error(ErrorCode::kCorrupt, options_.name_of(peer),
                      "a broadcast has an invalid length");
  }
  TRY(send_length(plan, frame));
  data.resize(total);
  if (first > 0) std::memcpy(data.data(), frame.data() + kSizeBytes, first);
  link(peer).release();
  return Ok{};
}

// The data that did not fit in the first frame.
Status Group::move_rest(const ExchangePlan& plan, std::span<std::byte> data) {
  const size_t first = std::min(data.size(), options_.piece_bytes - kSizeBytes);
  std::byte* const memory = data.data() + first;
  const size_t length = data.size() - first;
  return exchange_.run(options_, plan,
                       {.memory = {&memory, 1},
                        .lengths = {&length, 1},
                        .piece_elements = options_.piece_bytes,
                        .window_pieces = window_pieces()});
}

}  // namespace lockstep
