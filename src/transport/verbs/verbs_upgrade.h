// From authenticated TCP connections to RDMA links: each pair of ranks agrees on a queue pair and a
// frame size and tries it out. A pair that cannot stays on TCP on both sides, with one sentence
// that says why. For set-up only; blocks until its deadline.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "transport/link.h"
#include "transport/link_use.h"
#include "transport/tcp/rendezvous.h"

namespace lockstep {

class VerbsDevices;

// Ok if this process can use an RDMA port; otherwise one sentence says what is missing: support in
// this build, the library, a device, permission, or an active port with an IPv4 address.
Status verbs_availability();
// IPv4 addresses of this machine's active RDMA ports; empty if none.
std::vector<std::string> verbs_addresses();
// Late frames of ended connections that this process has dropped; 0 if it never used RDMA.
uint64_t verbs_late_frame_count();

struct VerbsUpgradeOptions {
  uint32_t epoch = 0;
  std::chrono::milliseconds timeout{10'000};
  const std::atomic<bool>* cancelled = nullptr;
  LinkOptions link{.kind = LinkKind::kVerbs};  // the same on every rank
  // Null: the process's own, VerbsDevices::of_process().
  VerbsDevices* devices = nullptr;
  // The largest frame to try, header included; 0: 64 KiB for reliable connections, 16 KiB for
  // unreliable ones, whose devices send whole frames however little they hold.
  size_t frame_bytes = 0;
};

struct VerbsUpgrade {
  std::vector<std::unique_ptr<Link>> links;  // by rank, null if there was no connection
  std::vector<LinkUse> uses;                 // for each link, by peer
  std::string refusal;  // why the first connection that stays on TCP does; empty: none does
};

// Each rail of a pair is one queue pair. All ranks call this, each with its connections. An error
// means that a peer is gone or silent; a lack of RDMA is not an error.
Result<VerbsUpgrade> upgrade_to_verbs(PeerConnections connections,
                                      const VerbsUpgradeOptions& options);

}  // namespace lockstep
