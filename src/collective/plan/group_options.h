// The options from which a group is formed.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <vector>

#include "base/progress.h"
#include "collective/plan/algorithm.h"
#include "collective/plan/link_cost.h"
#include "collective/plan/link_graph.h"
#include "collective/plan/wire.h"
#include "kernels/kernels.h"
#include "transport/link.h"
#include "transport/metered_link.h"

namespace lockstep {

// Long messages travel in frames of this size, so that adding overlaps with sending.
inline constexpr size_t kPieceBytes = size_t{256} * 1024;
inline constexpr size_t kPieceBytesMin = 2048;

struct GroupOptions {
  int rank = 0;
  // links[r] reaches rank r; null for this rank and for ranks that are reached through others.
  std::vector<std::unique_ptr<Link>> links;
  // Added to ranks in errors and `progress`: a pipeline stage's first rank in the world.
  int first_rank = 0;
  std::chrono::milliseconds timeout{10'000};
  std::chrono::milliseconds form_timeout{30'000};  // for Group::form, while other ranks still start
  const std::atomic<bool>* cancelled = nullptr;
  Progress* progress = nullptr;  // shows the rank we wait for
  const KernelTable* kernels = nullptr;
  std::shared_ptr<LinkMeters> meters{};  // by rank of the world, for measurements; null: none

  // The rest must be the same on every rank. Group::form() lowers `piece_bytes` to what all links
  // can carry and finds out `graph` and `link_costs`.
  size_t piece_bytes = kPieceBytes;  // at least kPieceBytesMin
  LinkGraph graph;                   // empty: every two ranks have a link
  std::vector<LinkCost> link_costs;  // (ranks, ranks), symmetric; empty: usual costs
  SumAlgorithm algorithm = SumAlgorithm::kAuto;
  Wire wire = Wire::kF32;  // for sums of at least `wire_rows_min` rows
  int wire_rows_min = 32;  // more than decode has: prompts only

  int name_of(int rank) const { return first_rank + rank; }
};

}  // namespace lockstep
