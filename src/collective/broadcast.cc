// Group::broadcast and the idle wait for it. Only the root knows the length: the first frame is the
// length as a little-endian u64, then data follow as far as the piece goes.
#include <algorithm>
#include <cstring>
#include <string>

#include "base/check.h"
#include "collective/group.h"
#include "collective/peer_wait.h"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kPrefixBytes = sizeof(uint64_t);
constexpr size_t kFirstDataBytes = kPieceBytes - kPrefixBytes;

// Longer than the pause between two steps of decode, so that these never pay for a wake-up.
constexpr std::chrono::milliseconds kPolling{1};
constexpr std::chrono::milliseconds kSleep{10};  // between two looks at `cancelled`
constexpr int kPollsPerYield = 64;               // some 3 us

}  // namespace

Status Group::wait_for(int root) {
  LOCKSTEP_CHECK(root >= 0 && root < size());
  if (!state_.ok()) return state_;
  if (!is_peer(root)) return Ok{};
  if (options_.progress) options_.progress->set(Progress::kIdle);
  Status status = idle_until_message(link(root));
  if (options_.progress) options_.progress->set(Progress::kComputing);
  return finish(std::move(status));
}

Status Group::idle_until_message(Link& link) {
  const auto polling_ends = Clock::now() + kPolling;
  bool is_polling = true;
  for (;;) {
    for (int poll = 0; poll < kPollsPerYield; ++poll) {
      if (!link.peek().empty()) return Ok{};
      relax_processor();
    }
    TRY(link.health());
    if (options_.cancelled && options_.cancelled->load(std::memory_order_relaxed)) {
      return Error{ErrorCode::kCancelled, "the wait for the next step was cancelled"};
    }
    is_polling = is_polling && Clock::now() < polling_ends;
    if (is_polling) {
      yield_processor();
    } else {
      link.wait_readable(kSleep);
    }
  }
}

Status Group::broadcast(int root, std::vector<std::byte>& data, size_t bytes_max) {
  LOCKSTEP_CHECK(root >= 0 && root < size());
  if (!state_.ok()) return state_;
  std::fill(transfers_.begin(), transfers_.end(), Transfer{});
  if (is_peer(root)) return finish(receive_size_and_data(root, data, bytes_max));
  LOCKSTEP_CHECK(data.size() <= bytes_max);
  return finish(send_size_and_data(data));
}

Status Group::send_size_and_data(std::span<const std::byte> data) {
  const uint64_t total = data.size();
  const size_t first = std::min(data.size(), kFirstDataBytes);
  PeerWait wait(options_);
  for (int peer = 0; peer < size(); ++peer) {
    if (!is_peer(peer)) continue;
    auto frame = link(peer).acquire(kPrefixBytes + first);
    while (frame.empty()) {
      link(peer).flush();
      TRY(wait.pause(peer, "room for a message"));
      frame = link(peer).acquire(kPrefixBytes + first);
    }
    std::memcpy(frame.data(), &total, kPrefixBytes);
    if (first > 0) std::memcpy(frame.data() + kPrefixBytes, data.data(), first);
    link(peer).post();
    transfers_[static_cast<size_t>(peer)].out = data.subspan(first);
  }
  return exchange();
}

Status Group::receive_size_and_data(int root, std::vector<std::byte>& data, size_t bytes_max) {
  PeerWait wait(options_);
  auto frame = link(root).peek();
  while (frame.empty()) {
    TRY(wait.pause(root));
    frame = link(root).peek();
  }
  uint64_t total = 0;
  if (frame.size() >= kPrefixBytes) std::memcpy(&total, frame.data(), kPrefixBytes);
  const size_t first = std::min<uint64_t>(total, kFirstDataBytes);
  if (total > bytes_max || frame.size() != kPrefixBytes + first) {
    return peer_error(ErrorCode::kCorrupt, root, "a broadcast has an impossible length");
  }
  data.resize(total);
  if (first > 0) std::memcpy(data.data(), frame.data() + kPrefixBytes, first);
  link(root).release();
  transfers_[static_cast<size_t>(root)].in = std::span(data).subspan(first);
  return exchange();
}

}  // namespace lockstep
