// ShmLink: a Link between two processes (or threads) of one machine through a shared region with
// one ring of frames per direction. A ring has one sender and one receiver. Frames are contiguous
// and are written and read in place. Nothing that the peer writes into the region is trusted: it
// can make the link kCorrupt, but cannot make this side touch memory outside the rings. A killed
// peer is not noticed here, only by its parent process or by the deadline of a wait.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/files/unique_fd.h"
#include "transport/frame.h"
#include "transport/link.h"
#include "transport/shm/shared_memory.h"

namespace lockstep {

// The start of the region; the frames of ring 0 and of ring 1 follow. Positions count bytes since
// the link began and never decrease; a position is at offset position % ring_bytes. Data that one
// side writes and the other reads has its own pair of cache lines (processors fetch lines in
// pairs).
struct ShmRegion {
  static constexpr uint64_t kMagic = 0x31'6b6e'696c'6d68;  // in memory: "hmlink1"

  struct Ring {
    alignas(128) std::atomic<uint64_t> sent;   // written by the sender: end of the sent frames
    std::atomic<uint32_t> closed;              // written by the sender once, after its last frame
    alignas(128) std::atomic<uint64_t> taken;  // written by the receiver: free up to here
    alignas(128) std::atomic<uint32_t> sleeping;  // 1 while the receiver sleeps on it
  };

  uint64_t magic;
  uint64_t ring_bytes;
  Ring rings[2];  // side 0 sends on ring 0
};
static_assert(std::atomic<uint64_t>::is_always_lock_free);
static_assert(sizeof(ShmRegion) % kFrameAlignment == 0);

class ShmLink final : public Link {
 public:
  struct Options {
    int side = 0;  // 0 or 1; the peer has the other
    int peer = 0;  // its rank, for messages
    uint32_t epoch = 0;
    // Four of the largest frames, so that a sender rarely waits for a receiver that lags by one
    // frame. A power of two. Only memory that was used takes space: at first a ring's start.
    size_t ring_bytes = 4 * kFrameBytesMax;
  };

  // The region of one pair of ranks; for the descriptor see SharedMemory::create.
  static Result<UniqueFd> create_region() { return create_region(Options{}.ring_bytes); }
  static Result<UniqueFd> create_region(size_t ring_bytes);
  static size_t region_bytes(size_t ring_bytes) { return sizeof(ShmRegion) + 2 * ring_bytes; }

  // Each side opens the same region once; `fd` may be closed afterwards.
  static Result<std::unique_ptr<Link>> open(int fd, const Options& options);

  ~ShmLink() override;
  ShmLink(const ShmLink&) = delete;
  ShmLink& operator=(const ShmLink&) = delete;

  size_t frame_bytes_max() const override { return frame_bytes_max_; }
  std::span<std::byte> acquire(size_t bytes) override;
  void post() override;
  bool flush() override { return true; }
  std::span<const std::byte> peek() override;
  void release() override;
  void wait_readable(std::chrono::microseconds at_most) override;
  Status health() const override;

 private:
  ShmLink(SharedMemory memory, const Options& options);
  bool has_room(size_t bytes);
  void write_header(uint32_t length);
  FrameHeader read_header() const;
  bool look_for_sent();
  std::span<const std::byte> parse();
  void break_link(Error error);

  SharedMemory memory_;
  Options options_;
  size_t frame_bytes_max_;
  ShmRegion::Ring* out_;
  ShmRegion::Ring* in_;
  std::byte* out_frames_;
  std::byte* in_frames_;

  uint64_t sent_ = 0;           // our position in the outgoing ring
  uint64_t taken_by_peer_ = 0;  // the peer's position there, as last read
  uint64_t send_sequence_ = 0;
  size_t acquired_bytes_ = 0;  // payload of the last acquired frame; 0: none

  uint64_t taken_ = 0;         // our position in the incoming ring
  uint64_t sent_by_peer_ = 0;  // the peer's position there, as last read
  uint64_t receive_sequence_ = 0;
  std::span<const std::byte> peeked_;  // the held frame; empty: none

  Status state_ = Ok{};
};

}  // namespace lockstep
