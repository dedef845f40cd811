#include "transport/verbs/verbs_pair.h"

#ifdef LOCKSTEP_HAS_VERBS

#include <algorithm>
#include <iterator>
#include <optional>
#include <random>
#include <utility>

#include "base/threads/wait.h"

namespace lockstep {
namespace {

// Every device supports the smallest.
constexpr size_t kFrameSizes[] = {64 * 1024, 16 * 1024, 4 * 1024};
constexpr size_t kFrameBytesUnreliable = 16 * 1024;
constexpr std::chrono::milliseconds kTrialMax{1'000};  // for one frame to arrive
constexpr std::chrono::milliseconds kTrialLook{1};
static_assert(kTrialMax * std::size(kFrameSizes) <= VerbsPair::kTrialsMax);
constexpr uint32_t kFirstPacketMask = 0xff'ffff;

int window_of_peer(const VerbsNote& note) {
  if (note.window == 0) return VerbsLimits::kDepth;
  return static_cast<int>(std::clamp<uint32_t>(note.window, VerbsLimits::kWindowMin,
                                               static_cast<uint32_t>(VerbsLimits::kDepth)));
}

}  // namespace

Result<std::unique_ptr<Link>> VerbsPair::run() {
  VerbsNote own, peer;
  const Result<ibv_qp_type> best = devices_.best_type(port_.device);
  const bool is_reliable = best.ok() && best.value() == IBV_QPT_RC;
  const size_t wish = options_.frame_bytes != 0 ? options_.frame_bytes
                      : is_reliable             ? kFrameSizes[0]
                                                : kFrameBytesUnreliable;
  own.is_reliable = is_reliable ? 1 : 0;
  own.mtu = static_cast<uint32_t>(port_.mtu);
  own.frame_bytes = static_cast<uint32_t>(wish);
  if (!TRY(agree(own, peer, best.ok() ? Status(Ok{}) : Status(best.error()))))
    return std::unique_ptr<Link>();
  type_ = is_reliable && peer.is_reliable != 0 ? IBV_QPT_RC : IBV_QPT_UC;
  mtu_ = std::clamp(static_cast<ibv_mtu>(std::min(own.mtu, peer.mtu)), IBV_MTU_256, IBV_MTU_4096);
  for (const size_t frame_bytes : kFrameSizes) {
    if (frame_bytes > std::min<size_t>(wish, peer.frame_bytes)) continue;
    auto link = TRY(try_size(frame_bytes));
    if (!link) continue;
    link->attach(std::move(socket_));
    return std::unique_ptr<Link>(std::move(link));
  }
  if (refusal_.empty()) refusal_ = "the ranks agree on no size of a frame";
  return std::unique_ptr<Link>();
}

Result<bool> VerbsPair::agree(VerbsNote& own, VerbsNote& peer, const Status& status) {
  return exchange_notes(socket_.get(), own, peer, status, options_.limits, refusal_);
}

// Connects with frames of this size and sends one in each direction.
Result<std::unique_ptr<VerbsLink>> VerbsPair::try_size(size_t frame_bytes) {
  std::random_device random;
  Result<VerbsLease> lease = devices_.take(port_.device, type_);
  Status status = lease.ok() ? Status(Ok{}) : Status(lease.error());
  std::optional<VerbsQueue> queue;
  VerbsNote own, peer;
  own.phase = VerbsNote::kEndpoint;
  if (lease.ok()) {
    queue.emplace(std::move(lease.value()));
    own.queue_pair = queue->number();
    own.first_packet = random() & kFirstPacketMask;
    own.connection = random();
    own.lid = port_.lid;
    own.gid = port_.gid;
    own.window = static_cast<uint32_t>(devices_.window(port_.device, frame_bytes));
  }
  if (!TRY(agree(own, peer, status))) return std::unique_ptr<VerbsLink>();
  const uint32_t peer_connection = peer.connection;
  const int peer_window = window_of_peer(peer);
  status = queue->connect(
      {.port = port_,
       .mtu = mtu_,
       .frame_bytes = frame_bytes,
       .own = {own.gid, own.lid, own.queue_pair, own.first_packet},
       .peer = {peer.gid, peer.lid, peer.queue_pair, peer.first_packet & kFirstPacketMask}});
  own.phase = VerbsNote::kReady;
  if (!TRY(agree(own, peer, status))) return std::unique_ptr<VerbsLink>();
  auto link = std::make_unique<VerbsLink>(std::move(*queue),
                                          VerbsLink::Options{.peer = options_.peer,
                                                             .epoch = options_.epoch,
                                                             .own_connection = own.connection,
                                                             .peer_connection = peer_connection,
                                                             .window = static_cast<int>(own.window),
                                                             .peer_window = peer_window});
  status = try_frame(*link);
  own.phase = VerbsNote::kVerdict;
  if (!TRY(agree(own, peer, status))) return std::unique_ptr<VerbsLink>();
  return link;
}

// A full-length frame in each direction: some devices silently lose long ones.
Status VerbsPair::try_frame(VerbsLink& link) const {
  const auto value = [](size_t i) { return static_cast<std::byte>(i * 131 + (i >> 8)); };
  const std::span<std::byte> out = link.acquire(link.frame_bytes_max());
  if (!out.empty()) {
    for (size_t i = 0; i < out.size(); ++i) out[i] = value(i);
    link.post();
  }
  Wait wait(kTrialMax, options_.limits.cancelled);
  while (link.peek().empty()) {
    link.wait_readable(kTrialLook);  // software devices need the processor
    TRY(link.health());
    if (Status waited = wait.pause("trial frame"); !waited.ok()) {
      const std::string what = "no frame of " + std::to_string(link.frame_bytes_max()) +
                               " bytes arrived over RDMA within " +
                               std::to_string(kTrialMax.count()) +
                               " ms: does the cable lead there, and is RDMA switched on at both "
                               "ends?";
      return peer_error(ErrorCode::kTimeout, options_.peer, what.c_str());
    }
  }
  const std::span<const std::byte> in = link.peek();
  bool is_right = in.size() == link.frame_bytes_max();
  for (size_t i = 0; i < in.size() && is_right; ++i) is_right = in[i] == value(i);
  link.release();
  if (!is_right)
    return peer_error(ErrorCode::kCorrupt, options_.peer, "RDMA changed the trial frame");
  return link.health();
}

}  // namespace lockstep

#endif
