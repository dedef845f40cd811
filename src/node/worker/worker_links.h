// The links of one rank to the others, as the node has prepared them. Used by worker_main.
#pragma once

#include <memory>
#include <vector>

#include "base/result.h"
#include "node/wire/messages.h"
#include "node/worker/worker_control.h"
#include "transport/link.h"
#include "transport/link_use.h"

namespace lockstep {

struct WorkerLinks {
  // links[r] reaches rank r; null for our own rank and where the topology has none.
  std::vector<std::unique_ptr<Link>> links;
  std::vector<LinkUse> uses;  // what they are, by peer
};

// Over tcp this listens, on loopback unless the set-up has hosts, and waits for the other ranks;
// `late_count` grows by connections of earlier epochs' ranks.
Result<WorkerLinks> open_worker_links(const WorkerSetup& setup, const EpochOrder& order,
                                      WorkerControl& control, uint64_t& late_count);

}  // namespace lockstep
