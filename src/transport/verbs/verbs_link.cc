#include "transport/verbs/verbs_link.h"

#ifdef LOCKSTEP_HAS_VERBS

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/threads/wait.h"
#include "transport/tcp/socket.h"

namespace lockstep {
namespace {

// The maximum that can exist.
constexpr size_t kCompletionsAtOnce = VerbsDevices::kFramesPerChannel;
// Between two checks of the side channel, and polls between two reads of the clock.
constexpr std::chrono::milliseconds kLookEvery{1};
constexpr unsigned kPollsPerClock = 64;
// On the side channel: a dead network is noticed this much later than with TCP.
constexpr std::chrono::milliseconds kSpeakEvery{100};
// After a peer announced its number of sent frames and left: until missing frames count as lost.
constexpr std::chrono::milliseconds kGrace{200};
// Frames that an unreliable queue pair has not brought although the peer's word about them came by
// TCP: they need microseconds, and milliseconds over a software device.
constexpr std::chrono::seconds kMissingMax{5};
// For our last frames to leave before the queue pair is reset.
constexpr std::chrono::milliseconds kLeaveMax{200};
// One credit is reserved for frames that return credits: two sides with none would deadlock.
constexpr uint64_t kKeptCredits = 1;
// If one read frame justified an answer, two idle sides would answer each other for ever.
constexpr int kReadsPerOfferMin = 2;

}  // namespace

VerbsLink::VerbsLink(VerbsQueue queue, const Options& options)
    : queue_(std::move(queue)),
      options_(options),
      window_(static_cast<uint64_t>(options.window)),
      reads_per_offer_(
          static_cast<uint64_t>(std::max(kReadsPerOfferMin, options.peer_window / 2))) {
  const auto is_possible = [](int window) {
    return window >= VerbsLimits::kWindowMin && window <= VerbsLimits::kDepth;
  };
  LOCKSTEP_CHECK(is_possible(options.window) && is_possible(options.peer_window));
}

VerbsLink::~VerbsLink() {
  leave();
}

void VerbsLink::attach(UniqueFd side_channel) {
  side_channel_ = std::move(side_channel);
  PathWatch::prepare(side_channel_.get());
}

std::span<std::byte> VerbsLink::acquire(size_t bytes) {
  LOCKSTEP_CHECK(bytes > 0 && bytes <= frame_bytes_max());
  if (!has_room()) poll();
  if (!has_room()) return {};
  acquired_bytes_ = bytes;
  return {queue_.outgoing(next_frame_) + kFrameHeaderBytes, bytes};
}

void VerbsLink::post() {
  LOCKSTEP_CHECK(acquired_bytes_ > 0);
  const size_t length = std::exchange(acquired_bytes_, 0);
  send(next_frame_, length);
  next_frame_ = (next_frame_ + 1) % VerbsDevices::kDepth;
  ++sending_;
}

// The device has every posted frame, and the frames' memory outlives this link.
bool VerbsLink::flush() {
  return true;
}

std::span<const std::byte> VerbsLink::peek() {
  if (!peeked_.empty()) return peeked_;
  if (arrival_count_ == 0) poll();
  if (arrival_count_ == 0) return {};
  const Arrival& arrival = arrivals_[first_arrival_];
  peeked_ = {queue_.incoming(arrival.frame) + kFrameHeaderBytes, arrival.length};
  return peeked_;
}

void VerbsLink::release() {
  LOCKSTEP_CHECK(!peeked_.empty());
  peeked_ = {};
  const int frame = arrivals_[first_arrival_].frame;
  first_arrival_ = (first_arrival_ + 1) % kDepth;
  --arrival_count_;
  ++received_;
  give_room(frame);
  offer_credits();
}

// Some devices wake no one, so this polls repeatedly and sleeps on the side channel.
void VerbsLink::wait_readable(std::chrono::microseconds at_most) {
  const Clock::time_point end = Clock::now() + at_most;
  while (peek().empty() && state_.ok()) {
    const Clock::time_point now = Clock::now();
    if (now >= end) return;
    pollfd entry{is_left_ ? -1 : side_channel_.get(), POLLIN, 0};
    ::poll(&entry, 1, static_cast<int>(kLookEvery.count()));
    look_at_side_channel();
  }
}

Status VerbsLink::health() const {
  if (arrival_count_ > 0) return Ok{};  // read the remaining frames first
  return state_;
}

bool VerbsLink::has_room() const {
  return state_.ok() && sending_ < VerbsDevices::kDepth && credits() > kKeptCredits;
}

void VerbsLink::send(int frame, size_t length) {
  VerbsHeader header;
  header.frame = {options_.epoch, static_cast<uint32_t>(length), sent_++};
  header.connection = options_.peer_connection;
  header.received = reported_ = received_;
  std::byte* const bytes = queue_.outgoing(frame);
  std::memcpy(bytes, &header, sizeof(header));
  std::memset(bytes + sizeof(header), 0, kFrameHeaderBytes - sizeof(header));
  if (!state_.ok()) return;
  if (const int failed = queue_.post_send(frame, kFrameHeaderBytes + length); failed != 0) {
    break_link(peer_error(ErrorCode::kPeerLost, options_.peer,
                          (std::string("sending failed: ") + std::strerror(failed)).c_str()));
  }
}

// Half of the peer's window justifies an extra frame. An acquired frame will return the credits
// anyway.
void VerbsLink::offer_credits() {
  if (received_ - reported_ < reads_per_offer_ || acquired_bytes_ > 0) return;
  if (is_spare_sending_ || credits() == 0 || !state_.ok()) return;
  is_spare_sending_ = true;
  send(VerbsQueue::kSpareFrame, 0);
}

void VerbsLink::poll() {
  if (!state_.ok()) return;
  std::array<ibv_wc, kCompletionsAtOnce> found;
  const int count = queue_.poll(found);
  if (count < 0) {
    break_link(peer_error(ErrorCode::kPeerLost, options_.peer, "its completions cannot be read"));
    return;
  }
  for (int i = 0; i < count && state_.ok(); ++i) complete(found[static_cast<size_t>(i)]);
  offer_credits();
  if (is_left_ && count == 0) finish_loss();
  if (++polls_ % kPollsPerClock == 0 && Clock::now() - looked_ > kLookEvery) {
    looked_ = Clock::now();
    look_at_side_channel();
  }
}

void VerbsLink::complete(const ibv_wc& completion) {
  if (completion.status != IBV_WC_SUCCESS) {
    break_link(peer_error(ErrorCode::kPeerLost, options_.peer, describe_status(completion.status)));
    return;
  }
  const int frame = static_cast<int>(completion.wr_id & 0xffff);
  if ((completion.wr_id & VerbsQueue::kReceiveBit) != 0) {
    accept(frame, completion.byte_len);
  } else if (frame == VerbsQueue::kSpareFrame) {
    is_spare_sending_ = false;
  } else {
    --sending_;
  }
}

// A frame has arrived. Nothing in it is trusted.
void VerbsLink::accept(int frame, size_t bytes) {
  VerbsHeader header;
  std::memcpy(&header, queue_.incoming(frame), sizeof(header));
  if (bytes < kFrameHeaderBytes || header.magic != VerbsHeader::kMagic) {
    return break_link(peer_error(ErrorCode::kCorrupt, options_.peer, "a frame has no header"));
  }
  if (header.connection != options_.own_connection) {  // a late one, from an ended connection
    queue_.devices().count_late_frame();
    return give_room(frame);
  }
  const bool has_payload = header.frame.length > 0;
  FrameHeader checked = header.frame;
  if (!has_payload) checked.length = 1;
  const FrameHeader wanted{options_.epoch, static_cast<uint32_t>(frame_bytes_max()), arrived_};
  if (Status status = check_header(checked, wanted, options_.peer); !status.ok()) {
    return break_link(std::move(status.error()));
  }
  if (kFrameHeaderBytes + header.frame.length > bytes) {
    return break_link(peer_error(ErrorCode::kCorrupt, options_.peer, "a frame is cut short"));
  }
  const bool is_more = header.received >= received_by_peer_ && header.received <= sent_;
  if (!is_more || arrived_ - received_ >= kDepth) {
    return break_link(peer_error(ErrorCode::kCorrupt, options_.peer, "its credits are invalid"));
  }
  ++arrived_;
  received_by_peer_ = header.received;
  if (has_payload) {
    arrivals_[(first_arrival_ + arrival_count_++) % kDepth] = {frame, header.frame.length};
  } else {
    ++received_;
    give_room(frame);
  }
}

void VerbsLink::give_room(int frame) {
  if (!state_.ok()) return;
  if (const int failed = queue_.post_receive(frame); failed != 0) {
    break_link(peer_error(
        ErrorCode::kPeerLost, options_.peer,
        (std::string("room for its frames was refused: ") + std::strerror(failed)).c_str()));
  }
}

void VerbsLink::look_at_side_channel() {
  if (!side_channel_.is_open() || is_left_) return;
  hear();
  if (!is_left_) watch_path();
  if (!is_left_) watch_losses();
}

// Anything after a farewell is ignored.
void VerbsLink::hear() {
  while (true) {
    std::byte rest[1];
    const bool is_whole = word_bytes_ == sizeof(word_);
    void* const to = is_whole ? rest : reinterpret_cast<std::byte*>(&word_) + word_bytes_;
    const size_t room = is_whole ? sizeof(rest) : sizeof(word_) - word_bytes_;
    const ssize_t got = ::recv(side_channel_.get(), to, room, MSG_DONTWAIT);
    if (got > 0) {
      if (is_whole) return;
      word_bytes_ += static_cast<size_t>(got);
      if (word_bytes_ < sizeof(word_) || word_.magic != Word::kPresent) continue;
      announced_ = std::max(announced_, word_.sent);
      word_bytes_ = 0;
    } else if (got == 0 || !is_try_later(errno)) {
      is_left_ = true;
      left_at_ = Clock::now();
      return;
    } else {
      return;
    }
  }
}

// An idle connection cannot show that its network is dead, so a word is sent now and then.
void VerbsLink::watch_path() {
  const Clock::time_point now = Clock::now();
  if (now - spoke_ > kSpeakEvery) {
    spoke_ = now;
    const Word word{Word::kPresent, sent_};
    const ssize_t sent = ::send(side_channel_.get(), &word, sizeof(word), kSendFlags);
    // A partial word would be taken for the beginning of the next, so nothing may follow it.
    if (sent > 0 && sent != sizeof(word)) {
      return break_link(peer_error(ErrorCode::kPeerLost, options_.peer,
                                   "it has not read its side channel for hours"));
    }
  }
  if (path_.is_dead(side_channel_.get())) {
    break_link(peer_error(ErrorCode::kPeerLost, options_.peer, kDeadPath));
  }
}

// A frame that is the last one for now breaks no sequence when it is lost, and a device tells of no
// loss: it drops frames, or a cable brings them in one direction only.
void VerbsLink::watch_losses() {
  if (queue_.is_reliable() || announced_ <= arrived_) {
    missing_since_ = {};
    return;
  }
  const Clock::time_point now = Clock::now();
  if (missing_since_ == Clock::time_point{} || missing_after_ != arrived_) {
    missing_since_ = now;
    missing_after_ = arrived_;
    is_overdue_ = false;
  } else if (now - missing_since_ > kMissingMax) {
    // First whatever arrived while this process was stopped is polled.
    if (!std::exchange(is_overdue_, true)) return;
    const std::string what = std::to_string(announced_ - arrived_) + " of the " +
                             std::to_string(announced_) +
                             " frames that it sent over RDMA have not arrived: the device dropped "
                             "them, or the cable is dead in this direction";
    break_link(peer_error(ErrorCode::kPeerLost, options_.peer, what));
  }
}

// The peer has left and nothing arrives at the moment.
void VerbsLink::finish_loss() {
  if (has_missing_frames() && Clock::now() - left_at_ < kGrace) return;
  break_link(peer_error(ErrorCode::kPeerLost, options_.peer,
                        has_missing_frames() ? "it closed the link and its last frames are lost"
                                             : "it closed the link"));
}

bool VerbsLink::has_missing_frames() const {
  return word_bytes_ == sizeof(word_) && word_.magic == Word::kFarewell && word_.sent > arrived_;
}

void VerbsLink::leave() {
  if (!side_channel_.is_open()) return;
  Wait wait(kLeaveMax);
  while (state_.ok() && (sending_ > 0 || is_spare_sending_)) {
    poll();
    if (!wait.pause("last frames").ok()) break;
    ::poll(nullptr, 0, 1);  // software devices need the processor
  }
  const Word last{Word::kFarewell, sent_};
  // Without it the peer still sees the connection end.
  [[maybe_unused]] const ssize_t sent =
      ::send(side_channel_.get(), &last, sizeof(last), kSendFlags);
}

void VerbsLink::break_link(Error error) {
  if (state_.ok()) state_ = std::move(error);
}

}  // namespace lockstep

#endif
