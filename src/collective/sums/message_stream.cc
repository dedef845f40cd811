#include "collective/sums/message_stream.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "collective/sums/peer_wait.h"
#include "transport/frame.h"

namespace lockstep {
namespace {

constexpr size_t kLengthBytes = sizeof(uint64_t);

}  // namespace

MessageSender::MessageSender(Link& link)
    : link_(link), piece_bytes_(std::min(link.frame_bytes_max(), kPieceBytes)) {
  LOCKSTEP_CHECK(piece_bytes_ > kLengthBytes);
}

void MessageSender::send(std::vector<std::byte>& message) {
  LOCKSTEP_CHECK(is_idle_ && !message.empty());
  std::swap(message_, message);
  unsent_ = message_;
  is_first_frame_ = true;
  is_idle_ = false;
}

bool MessageSender::poll() {
  if (is_idle_) return false;
  bool has_moved = false;
  while (!unsent_.empty()) {
    const size_t prefix = is_first_frame_ ? kLengthBytes : 0;
    const size_t bytes = std::min(unsent_.size(), piece_bytes_ - prefix);
    const auto frame = link_.acquire(prefix + bytes);
    if (frame.empty()) break;
    const uint64_t total = message_.size();
    if (is_first_frame_) std::memcpy(frame.data(), &total, kLengthBytes);
    std::memcpy(frame.data() + prefix, unsent_.data(), bytes);
    link_.post();
    unsent_ = unsent_.subspan(bytes);
    is_first_frame_ = false;
    has_moved = true;
  }
  is_idle_ = link_.flush() && unsent_.empty();
  return has_moved;
}

MessageReceiver::MessageReceiver(Link& link, int peer, size_t messages_max, size_t bytes_max)
    : link_(link), peer_(peer), bytes_max_(bytes_max), messages_(messages_max) {
  LOCKSTEP_CHECK(messages_max > 0);
}

void MessageReceiver::take(std::vector<std::byte>& message) {
  LOCKSTEP_CHECK(whole_ > 0);
  std::swap(message, messages_[first_]);
  first_ = (first_ + 1) % messages_.size();
  --whole_;
}

Result<bool> MessageReceiver::poll() {
  bool has_moved = false;
  while (whole_ < messages_.size()) {
    const auto frame = link_.peek();
    if (frame.empty()) break;
    (void)TRY(take_frame(frame));
    link_.release();
    has_moved = true;
  }
  return has_moved;
}

Result<bool> MessageReceiver::take_frame(std::span<const std::byte> frame) {
  std::vector<std::byte>& message = messages_[(first_ + whole_) % messages_.size()];
  if (!is_coming_) {
    uint64_t total = 0;
    if (frame.size() >= kLengthBytes) std::memcpy(&total, frame.data(), kLengthBytes);
    if (total == 0 || total > bytes_max_) {
      return peer_error(ErrorCode::kCorrupt, peer_,
                        fmt::format("a message between stages announces {} bytes, not 1 to {}",
                                    total, bytes_max_));
    }
    reserve_message(message, total);
    message.resize(total);
    received_ = 0;
    is_coming_ = true;
    frame = frame.subspan(kLengthBytes);
  }
  if (frame.size() > message.size() - received_) {
    return peer_error(ErrorCode::kCorrupt, peer_,
                      "a message between stages is longer than announced");
  }
  if (!frame.empty()) std::memcpy(message.data() + received_, frame.data(), frame.size());
  received_ += frame.size();
  if (received_ < message.size()) return false;
  is_coming_ = false;
  ++whole_;
  return true;
}

}  // namespace lockstep
