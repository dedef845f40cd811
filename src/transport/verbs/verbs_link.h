// VerbsLink: a Link over an RDMA queue pair, with the authenticated TCP connection to the same peer
// as its side channel. Frames are written and read in place in registered memory. A RECV is always
// posted for each frame the peer may send: the peer counts credits, which every frame returns, or a
// frame without payload if there is no data to send. Unacknowledged frames never exceed the
// window, because some devices drop what is more. A frame lost by an unreliable queue pair breaks
// the sequence: the link becomes kCorrupt, or kPeerLost if nothing follows it. peek() checks the
// side channel about once a millisecond for a peer that ended or was killed, for a dead network,
// and for the number of frames that the peer has sent, since both sides say it now and then.
#pragma once

#include "transport/verbs/verbs_queue.h"

#ifdef LOCKSTEP_HAS_VERBS

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>

#include "base/files/unique_fd.h"
#include "transport/frame.h"
#include "transport/link.h"
#include "transport/path_watch.h"

namespace lockstep {

// A frame's header, padded with zeros to kFrameHeaderBytes. Little-endian.
struct VerbsHeader {
  static constexpr uint32_t kMagic = 0x6d72'6676;  // in memory: "vfrm"

  FrameHeader frame;  // length 0: the frame only returns credits
  uint32_t magic = kMagic;
  uint32_t connection = 0;  // the number that the receiver assigned to this connection
  uint64_t received = 0;    // frames of the other direction that were read, so have room again
};
static_assert(sizeof(VerbsHeader) == 32);

class VerbsLink final : public Link {
 public:
  struct Options {
    int peer = 0;  // its rank, for messages
    uint32_t epoch = 0;
    uint32_t own_connection = 0;   // the number that the peer writes into its headers
    uint32_t peer_connection = 0;  // the number that we write
    // Frames that this side, and the peer, may have unacknowledged: VerbsDevices::window() of each.
    int window = VerbsDevices::kDepth;
    int peer_window = VerbsDevices::kDepth;
  };

  // The queue is connected on both sides.
  VerbsLink(VerbsQueue queue, const Options& options);
  ~VerbsLink() override;
  VerbsLink(const VerbsLink&) = delete;
  VerbsLink& operator=(const VerbsLink&) = delete;

  // From now on the end of this connection means the end of the peer.
  void attach(UniqueFd side_channel);

  size_t frame_bytes_max() const override { return queue_.frame_bytes() - kFrameHeaderBytes; }
  std::span<std::byte> acquire(size_t bytes) override;
  void post() override;
  bool flush() override;
  std::span<const std::byte> peek() override;
  void release() override;
  void wait_readable(std::chrono::microseconds at_most) override;
  Status health() const override;

  bool is_reliable() const { return queue_.is_reliable(); }

 private:
  using Clock = std::chrono::steady_clock;
  struct Arrival {
    int frame = 0;
    uint32_t length = 0;
  };
  // A word on the side channel holds the number of frames that this side has sent. It is sent now
  // and then, to be acknowledged, so that a dead network shows, and at the end.
  struct Word {
    static constexpr uint64_t kFarewell = 0x6c6c'6577'6572'6166;  // in memory: "farewell"
    static constexpr uint64_t kPresent = 0x746e'6573'6572'7000;   // in memory: "\0present"
    uint64_t magic = 0;
    uint64_t sent = 0;
  };

  bool has_room() const;
  uint64_t credits() const { return window_ + received_by_peer_ - sent_; }
  void send(int frame, size_t length);
  void offer_credits();
  void poll();
  void complete(const ibv_wc& completion);
  void accept(int frame, size_t bytes);
  void give_room(int frame);
  void look_at_side_channel();
  void hear();
  void watch_path();
  void watch_losses();
  bool has_missing_frames() const;
  void finish_loss();
  void leave();
  void break_link(Error error);

  static constexpr uint64_t kDepth = VerbsDevices::kDepth;

  VerbsQueue queue_;
  Options options_;
  const uint64_t window_;
  const uint64_t reads_per_offer_;  // this many read frames justify a frame that returns credits
  UniqueFd side_channel_;

  uint64_t sent_ = 0;              // frames, also the sequence number of the next
  uint64_t received_by_peer_ = 0;  // of those, from its last header
  int next_frame_ = 0;             // next outgoing frame to use
  int sending_ = 0;                // outgoing frames that the device still has
  bool is_spare_sending_ = false;
  size_t acquired_bytes_ = 0;  // payload of the last acquired frame; 0: none

  uint64_t arrived_ = 0;   // frames, also the sequence number expected next
  uint64_t received_ = 0;  // of those, frames that have room again
  uint64_t reported_ = 0;  // `received_` in our last header
  std::array<Arrival, kDepth> arrivals_;
  size_t first_arrival_ = 0;
  size_t arrival_count_ = 0;
  std::span<const std::byte> peeked_;  // the held frame; empty: none

  unsigned polls_ = 0;
  Clock::time_point looked_{};
  Clock::time_point spoke_{};  // last word sent on the side channel
  PathWatch path_;
  uint64_t announced_ = 0;             // frames that the peer has sent, by its own word
  Clock::time_point missing_since_{};  // no frame has arrived since, though some were announced
  uint64_t missing_after_ = 0;         // `arrived_` at that time
  bool is_overdue_ = false;            // one look ago they were missing for too long
  Word word_;                          // of the peer, as much as has arrived
  size_t word_bytes_ = 0;
  bool is_left_ = false;  // the side channel has ended
  Clock::time_point left_at_{};
  Status state_ = Ok{};
};

}  // namespace lockstep

#endif
