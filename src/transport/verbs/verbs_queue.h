// VerbsQueue: one queue pair with its frames, from connecting to its end. It sends and receives
// whole frames in registered memory and does not know their content. Two-sided SEND and RECV only:
// Apple's devices accept RDMA WRITE but never carry it out. One thread uses it; except for
// connect(), nothing here blocks, allocates or locks.
#pragma once

#include "transport/verbs/verbs_devices.h"

#ifdef LOCKSTEP_HAS_VERBS

#include <span>

namespace lockstep {

class VerbsQueue {
 public:
  // Sent to the other side before they connect.
  struct Endpoint {
    IpBytes gid{};
    uint32_t lid = 0;
    uint32_t queue_pair = 0;
    uint32_t first_packet = 0;  // 24 bits
  };
  struct Connection {
    VerbsPort port;  // ours
    ibv_mtu mtu = IBV_MTU_1024;
    size_t frame_bytes = 0;
    Endpoint own;
    Endpoint peer;
  };
  // In a completion's id: the frame's direction, above its number.
  static constexpr uint64_t kReceiveBit = uint64_t{1} << 32;
  // An extra outgoing frame for messages that must never wait for data frames.
  static constexpr int kSpareFrame = VerbsDevices::kDepth;

  explicit VerbsQueue(VerbsLease lease) : lease_(std::move(lease)) {}

  VerbsDevices& devices() const { return lease_.devices(); }
  bool is_reliable() const { return lease_.channel().type == IBV_QPT_RC; }
  uint32_t number() const { return lease_.channel().queue_pair->qp_num; }

  // Moves the queue pair from RESET to ready, and posts RECVs for all incoming frames. The peer
  // must not send before it knows that this is done.
  Status connect(const Connection& connection);

  size_t frame_bytes() const { return frame_bytes_; }
  // Outgoing frames are 0 to kSpareFrame, incoming ones 0 to kDepth - 1.
  std::byte* outgoing(int frame) const;
  const std::byte* incoming(int frame) const;

  // 0 or an error number. A frame belongs to the device until its completion.
  int post_send(int frame, size_t bytes);
  int post_receive(int frame);
  // The number of completions found; negative after an error.
  int poll(std::span<ibv_wc> found) const;

 private:
  Status modify(ibv_qp_attr& attributes, int mask, const char* what) const;

  VerbsLease lease_;
  size_t frame_bytes_ = 0;
};

// "transport retry counter exceeded", for an unsuccessful completion.
const char* describe_status(ibv_wc_status status);

}  // namespace lockstep

#endif
