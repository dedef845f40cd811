#include "transport/verbs/verbs_queue.h"

#ifdef LOCKSTEP_HAS_VERBS

#include <cerrno>
#include <cstring>
#include <string>

#include "base/check.h"

namespace lockstep {
namespace {

// About 4 us * 2^14 = 67 ms until a packet is sent again, at most 6 times: half a second until a
// peer counts as lost. Some devices take 7 to mean forever. Waiting for a peer without a posted
// RECV is unlimited, since the link's credits ensure that there always is one.
constexpr uint8_t kAckTimeout = 14;
constexpr uint8_t kRetries = 6;
constexpr uint8_t kRetriesNotReady = 7;
constexpr uint8_t kNotReadyTimer = 12;
// Apple's devices are used with 1 everywhere; RoCE v2 may pass through routers.
constexpr uint8_t kHopsUnreliable = 1;
constexpr uint8_t kHopsReliable = 64;

// Access granted to the other end. SENDs into posted RECVs need none, and a faulty peer that
// guesses a key must not be able to write; some drivers (Apple's) refuse a queue pair without it.
constexpr int kOwnAccess = IBV_ACCESS_LOCAL_WRITE;
constexpr int kAllAccess =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;

}  // namespace

Status VerbsQueue::connect(const Connection& connection) {
  LOCKSTEP_CHECK(connection.frame_bytes <= VerbsDevices::kFrameBytesMax &&
                 connection.frame_bytes % VerbsDevices::kPageBytes == 0);
  frame_bytes_ = connection.frame_bytes;
  ibv_qp_attr init{};
  init.qp_state = IBV_QPS_INIT;
  init.port_num = connection.port.port;
  init.qp_access_flags = kOwnAccess;
  constexpr int kInitMask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
  if (!modify(init, kInitMask, "INIT").ok()) {
    init.qp_access_flags = kAllAccess;
    TRY(modify(init, kInitMask, "INIT"));
  }

  ibv_qp_attr receive{};
  receive.qp_state = IBV_QPS_RTR;
  receive.path_mtu = connection.mtu;
  receive.dest_qp_num = connection.peer.queue_pair;
  receive.rq_psn = connection.peer.first_packet;
  receive.ah_attr.dlid = static_cast<uint16_t>(connection.peer.lid);
  receive.ah_attr.port_num = connection.port.port;
  receive.ah_attr.is_global = 1;
  receive.ah_attr.grh.hop_limit = is_reliable() ? kHopsReliable : kHopsUnreliable;
  receive.ah_attr.grh.sgid_index = static_cast<uint8_t>(connection.port.gid_index);
  std::memcpy(receive.ah_attr.grh.dgid.raw, connection.peer.gid.data(), connection.peer.gid.size());
  int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  if (is_reliable()) {
    receive.max_dest_rd_atomic = 1;
    receive.min_rnr_timer = kNotReadyTimer;
    mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  }
  TRY(modify(receive, mask, "RTR"));

  ibv_qp_attr send{};
  send.qp_state = IBV_QPS_RTS;
  send.sq_psn = connection.own.first_packet;
  mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
  if (is_reliable()) {
    send.timeout = kAckTimeout;
    send.retry_cnt = kRetries;
    send.rnr_retry = kRetriesNotReady;
    send.max_rd_atomic = 1;
    mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
  }
  TRY(modify(send, mask, "RTS"));

  for (int frame = 0; frame < VerbsDevices::kDepth; ++frame) {
    if (const int failed = post_receive(frame); failed != 0) {
      return Error{ErrorCode::kUnsupported,
                   std::string("room for incoming frames was refused: ") + std::strerror(failed)};
    }
  }
  return Ok{};
}

Status VerbsQueue::modify(ibv_qp_attr& attributes, int mask, const char* what) const {
  const int failed = devices().api().modify_qp(lease_.channel().queue_pair, &attributes, mask);
  if (failed == 0) return Ok{};
  return Error{ErrorCode::kUnsupported,
               std::string("the queue pair did not become ") + what + ": " + std::strerror(failed)};
}

std::byte* VerbsQueue::outgoing(int frame) const {
  return lease_.channel().memory + static_cast<size_t>(frame) * frame_bytes_;
}

const std::byte* VerbsQueue::incoming(int frame) const {
  return outgoing(kSpareFrame + 1 + frame);
}

int VerbsQueue::post_send(int frame, size_t bytes) {
  ibv_sge piece{};
  piece.addr = reinterpret_cast<uint64_t>(outgoing(frame));
  // On Apple's devices a SEND and its RECV must span the same number of pages (TN3205).
  piece.length = static_cast<uint32_t>(is_reliable() ? bytes : frame_bytes_);
  piece.lkey = lease_.channel().memory_key;
  ibv_send_wr request{};
  request.wr_id = static_cast<uint64_t>(frame);
  request.sg_list = &piece;
  request.num_sge = 1;
  request.opcode = IBV_WR_SEND;
  request.send_flags = IBV_SEND_SIGNALED;
  ibv_send_wr* bad = nullptr;
  ibv_qp* const queue_pair = lease_.channel().queue_pair;
  return queue_pair->context->ops.post_send(queue_pair, &request, &bad);
}

int VerbsQueue::post_receive(int frame) {
  ibv_sge piece{};
  piece.addr = reinterpret_cast<uint64_t>(incoming(frame));
  piece.length = static_cast<uint32_t>(frame_bytes_);
  piece.lkey = lease_.channel().memory_key;
  ibv_recv_wr request{};
  request.wr_id = kReceiveBit | static_cast<uint64_t>(frame);
  request.sg_list = &piece;
  request.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  ibv_qp* const queue_pair = lease_.channel().queue_pair;
  return queue_pair->context->ops.post_recv(queue_pair, &request, &bad);
}

int VerbsQueue::poll(std::span<ibv_wc> found) const {
  ibv_cq* const completions = lease_.channel().completions;
  return completions->context->ops.poll_cq(completions, static_cast<int>(found.size()),
                                           found.data());
}

const char* describe_status(ibv_wc_status status) {
  switch (status) {
    case IBV_WC_LOC_LEN_ERR:
      return "a frame did not fit";
    case IBV_WC_LOC_QP_OP_ERR:
      return "local queue pair operation error, as when the port goes down";
    case IBV_WC_LOC_PROT_ERR:
      return "local protection error";
    case IBV_WC_WR_FLUSH_ERR:
      return "the connection had ended";
    case IBV_WC_REM_INV_REQ_ERR:
      return "the peer refused a frame";
    case IBV_WC_REM_ACCESS_ERR:
      return "the peer refused access";
    case IBV_WC_REM_OP_ERR:
      return "the peer had a local error";
    case IBV_WC_RETRY_EXC_ERR:
      return "no answer to repeated packets";
    case IBV_WC_RNR_RETRY_EXC_ERR:
      return "the peer was never ready";
    case IBV_WC_FATAL_ERR:
      return "the device failed";
    default:
      return "a completion with an error";
  }
}

}  // namespace lockstep

#endif
