#include "transport/shm/shm_link.h"

#include <algorithm>
#include <bit>
#include <new>
#include <utility>

#include "base/check.h"
#include "transport/shm/futex.h"

namespace lockstep {
namespace {

// Past this a ring whose receiver keeps up restarts at its beginning instead of walking through all
// of its memory, so that decode's frames stay in the caches of the two cores.
constexpr size_t kHotBytes = 256 * 1024;

// In place of a length: the rest of the ring is skipped, the frame is at its start.
constexpr uint32_t kSkip = 0xffff'ffff;

// A header in the ring. The peer could write it at any time, so it is read once, with atomics;
// ShmRegion::Ring::sent orders which frames may be read, so relaxed accesses are enough.
struct HeaderWords {
  std::atomic<uint64_t> epoch_and_length;
  std::atomic<uint64_t> sequence;
};

}  // namespace

Result<UniqueFd> ShmLink::create_region(size_t ring_bytes) {
  LOCKSTEP_CHECK(std::has_single_bit(ring_bytes) && ring_bytes >= 4096);
  UniqueFd fd = TRY(SharedMemory::create(region_bytes(ring_bytes)));
  SharedMemory memory = TRY(SharedMemory::map(fd.get(), region_bytes(ring_bytes)));
  auto* region = new (memory.data()) ShmRegion();
  region->magic = ShmRegion::kMagic;
  region->ring_bytes = ring_bytes;
  return fd;
}

Result<std::unique_ptr<Link>> ShmLink::open(int fd, const Options& options) {
  LOCKSTEP_CHECK(options.side == 0 || options.side == 1);
  SharedMemory memory = TRY(SharedMemory::map(fd, region_bytes(options.ring_bytes)));
  const auto* region = reinterpret_cast<const ShmRegion*>(memory.data());
  if (region->magic != ShmRegion::kMagic || region->ring_bytes != options.ring_bytes) {
    return peer_error(ErrorCode::kCorrupt, options.peer, "the shared memory is not a link");
  }
  return std::unique_ptr<Link>(new ShmLink(std::move(memory), options));
}

ShmLink::ShmLink(SharedMemory memory, const Options& options)
    : memory_(std::move(memory)),
      options_(options),
      frame_bytes_max_(std::min(kFrameBytesMax, options.ring_bytes / 4)) {
  auto* region = reinterpret_cast<ShmRegion*>(memory_.data());
  std::byte* frames = memory_.data() + sizeof(ShmRegion);
  const int in_side = 1 - options.side;
  out_ = &region->rings[options.side];
  in_ = &region->rings[in_side];
  out_frames_ = frames + static_cast<size_t>(options.side) * options.ring_bytes;
  in_frames_ = frames + static_cast<size_t>(in_side) * options.ring_bytes;
}

ShmLink::~ShmLink() {
  out_->closed.store(1, std::memory_order_seq_cst);
  out_->sleeping.store(0, std::memory_order_seq_cst);
  futex_wake(out_->sleeping);
}

std::span<std::byte> ShmLink::acquire(size_t bytes) {
  LOCKSTEP_CHECK(bytes > 0 && bytes <= frame_bytes_max_);
  const size_t ring_bytes = options_.ring_bytes;
  const size_t slot_bytes = frame_slot_bytes(bytes);
  const size_t rest_bytes = ring_bytes - sent_ % ring_bytes;
  const bool must_skip = rest_bytes < slot_bytes;
  const bool may_skip = sent_ % ring_bytes >= kHotBytes;
  if ((must_skip || may_skip) && has_room(rest_bytes + slot_bytes)) {
    write_header(kSkip);
    sent_ += rest_bytes;  // becomes visible with the frame
  } else if (must_skip || !has_room(slot_bytes)) {
    return {};
  }
  acquired_bytes_ = bytes;
  return {out_frames_ + sent_ % ring_bytes + kFrameHeaderBytes, bytes};
}

void ShmLink::post() {
  LOCKSTEP_CHECK(acquired_bytes_ > 0);
  write_header(static_cast<uint32_t>(acquired_bytes_));
  sent_ += frame_slot_bytes(acquired_bytes_);
  acquired_bytes_ = 0;
  ++send_sequence_;
  // Release: the peer that sees the position sees the frame. Sequentially consistent against
  // `sleeping`: either we see that the peer goes to sleep, or it sees this frame before it does.
  out_->sent.store(sent_, std::memory_order_seq_cst);
  if (out_->sleeping.load(std::memory_order_seq_cst) != 0) {
    out_->sleeping.store(0, std::memory_order_seq_cst);
    futex_wake(out_->sleeping);
  }
}

std::span<const std::byte> ShmLink::peek() {
  if (peeked_.empty() && state_.ok() && look_for_sent()) peeked_ = parse();
  return peeked_;
}

void ShmLink::release() {
  LOCKSTEP_CHECK(!peeked_.empty());
  taken_ += frame_slot_bytes(peeked_.size());
  peeked_ = {};
  // Release: all reads of the frame come before the peer may overwrite it.
  in_->taken.store(taken_, std::memory_order_release);
}

void ShmLink::wait_readable(std::chrono::microseconds at_most) {
  if (!peek().empty() || !state_.ok()) return;
  // Sequentially consistent, see post().
  in_->sleeping.store(1, std::memory_order_seq_cst);
  const bool is_silent = in_->sent.load(std::memory_order_seq_cst) == taken_ &&
                         in_->closed.load(std::memory_order_seq_cst) == 0;
  if (is_silent) futex_wait(in_->sleeping, 1, at_most);
  in_->sleeping.store(0, std::memory_order_seq_cst);
}

Status ShmLink::health() const {
  if (!state_.ok()) return state_;
  // Acquire: the peer closes after its last frame, so the position read next is its last.
  if (in_->closed.load(std::memory_order_acquire) == 0) return Ok{};
  if (in_->sent.load(std::memory_order_relaxed) != taken_) return Ok{};  // first read the rest
  return peer_error(ErrorCode::kPeerLost, options_.peer, "it closed the link");
}

// Whether `bytes` bytes fit at our position in the outgoing ring.
bool ShmLink::has_room(size_t bytes) {
  const size_t ring_bytes = options_.ring_bytes;
  if (sent_ + bytes - taken_by_peer_ <= ring_bytes) return true;
  // Acquire: the peer has finished reading before we overwrite.
  const uint64_t taken = out_->taken.load(std::memory_order_acquire);
  if (taken < taken_by_peer_ || taken > sent_ || taken % kFrameAlignment != 0) {
    break_link(peer_error(ErrorCode::kCorrupt, options_.peer, "its ring has an invalid position"));
    return false;
  }
  taken_by_peer_ = taken;
  return sent_ + bytes - taken_by_peer_ <= ring_bytes;
}

void ShmLink::write_header(uint32_t length) {
  auto* words = reinterpret_cast<HeaderWords*>(out_frames_ + sent_ % options_.ring_bytes);
  words->epoch_and_length.store(options_.epoch | uint64_t{length} << 32, std::memory_order_relaxed);
  words->sequence.store(send_sequence_, std::memory_order_relaxed);
}

FrameHeader ShmLink::read_header() const {
  const auto* words =
      reinterpret_cast<const HeaderWords*>(in_frames_ + taken_ % options_.ring_bytes);
  const uint64_t word = words->epoch_and_length.load(std::memory_order_relaxed);
  return {static_cast<uint32_t>(word), static_cast<uint32_t>(word >> 32),
          words->sequence.load(std::memory_order_relaxed)};
}

// True if there are unread bytes, which are then whole cache lines inside the ring.
bool ShmLink::look_for_sent() {
  if (sent_by_peer_ != taken_) return true;
  // Acquire: see post().
  const uint64_t sent = in_->sent.load(std::memory_order_acquire);
  if (sent == taken_) return false;
  if (sent < taken_ || sent - taken_ > options_.ring_bytes || sent % kFrameAlignment != 0) {
    break_link(peer_error(ErrorCode::kCorrupt, options_.peer, "its ring has an invalid position"));
    return false;
  }
  sent_by_peer_ = sent;
  return true;
}

// The frame at our position. Its whole header is checked against the range the peer has published.
std::span<const std::byte> ShmLink::parse() {
  const size_t ring_bytes = options_.ring_bytes;
  FrameHeader header = read_header();
  if (header.length == kSkip && header.epoch == options_.epoch &&
      header.sequence == receive_sequence_ &&
      ring_bytes - taken_ % ring_bytes < sent_by_peer_ - taken_) {
    taken_ += ring_bytes - taken_ % ring_bytes;  // returned to the peer with the frame
    header = read_header();
  }
  const FrameHeader wanted{options_.epoch, static_cast<uint32_t>(frame_bytes_max_),
                           receive_sequence_};
  if (Status status = check_header(header, wanted, options_.peer); !status.ok()) {
    break_link(std::move(status.error()));
    return {};
  }
  const size_t slot_bytes = frame_slot_bytes(header.length);
  if (slot_bytes > sent_by_peer_ - taken_ || slot_bytes > ring_bytes - taken_ % ring_bytes) {
    break_link(peer_error(ErrorCode::kCorrupt, options_.peer, "a frame is cut short"));
    return {};
  }
  ++receive_sequence_;
  return {in_frames_ + taken_ % ring_bytes + kFrameHeaderBytes, header.length};
}

void ShmLink::break_link(Error error) {
  if (state_.ok()) state_ = std::move(error);
}

}  // namespace lockstep
