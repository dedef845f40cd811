#include "model/load/latent_cut.h"

namespace lockstep {
namespace {

// Memory bandwidth of one rank while all ranks read, until machines measure themselves.
constexpr double kReadBytesPerUs = 20e3;  // 20 GB/s

// All-reduces between two processes on one machine (`lockstep bench collective`, Xeon with two
// cores): 4 KiB take 1.1 us over shared memory and 6 to 8 us over TCP, 1 MiB takes 71 us and 370.
// The latency counts once per peer, whose message must be written and read.
struct LatentCost {
  double latency_us;
  double bytes_per_us;
};
constexpr LatentCost kShmCost{1, 10e3};
constexpr LatentCost kTcpCost{8, 2.5e3};
// RDMA as reported by others, not measured here: frames of 4 KiB take 2 us between network cards
// and 10 us between Macs, and long transfers reach 3.5 GB/s there.
constexpr LatentCost kVerbsCost{5, 3e3};

// Ranks do not arrive at the same time, and each exchange waits for the last one.
constexpr double kWaitMargin = 2;

constexpr LatentCost cost_of(LinkKind link) {
  switch (link) {
    case LinkKind::kShm:
      return kShmCost;
    case LinkKind::kVerbs:
      return kVerbsCost;
    default:
      return kTcpCost;
  }
}

}  // namespace

LatentCutTimes latent_cut_times(const LatentCutCase& latent_case) {
  const double others = 1 - 1.0 / latent_case.ranks;  // the part that other ranks have
  const LatentCost cost = cost_of(latent_case.link);
  const double received_bytes = others * latent_case.rows * sizeof(float);
  const double hop_us =
      cost.latency_us * (latent_case.ranks - 1) + received_bytes / cost.bytes_per_us;
  return {.saved_us = others * static_cast<double>(latent_case.layer_bytes) / kReadBytesPerUs,
          .exchange_us = kWaitMargin * hop_us};
}

bool latent_cut_pays(const LatentCutCase& latent_case) {
  const LatentCutTimes times = latent_cut_times(latent_case);
  return times.saved_us > times.exchange_us;
}

bool cuts_latents(LatentCut wish, const LatentCutCase& latent_case) {
  if (latent_case.ranks < 2 || wish == LatentCut::kNever) return false;
  return wish == LatentCut::kAlways || latent_cut_pays(latent_case);
}

}  // namespace lockstep
