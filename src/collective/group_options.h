// What a group is formed from.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <vector>

#include "base/progress.h"
#include "collective/algorithm.h"
#include "collective/link_cost.h"
#include "collective/link_graph.h"
#include "collective/wire.h"
#include "kernels/kernels.h"
#include "transport/link.h"

namespace lockstep {

// Long messages travel in frames of this size, so that adding overlaps with sending.
inline constexpr size_t kPieceBytes = size_t{256} * 1024;
inline constexpr size_t kPieceBytesMin = 2048;

struct GroupOptions {
  int rank = 0;
  // links[r] reaches rank r; links[rank] is null, and so is one to a rank that is reached by way of
  // others.
  std::vector<std::unique_ptr<Link>> links;
  // What errors and `progress` call rank 0: in a pipeline, a stage's first rank in the world.
  int first_rank = 0;
  std::chrono::milliseconds timeout{10'000};
  std::chrono::milliseconds form_timeout{30'000};  // of Group::form, while other ranks still start
  const std::atomic<bool>* cancelled = nullptr;
  Progress* progress = nullptr;  // told for which rank we wait
  const KernelTable* kernels = nullptr;

  // The rest must be the same on every rank. Group::form() brings `piece_bytes` down to what all
  // links can carry and finds `graph` and `link_costs` out.
  size_t piece_bytes = kPieceBytes;  // at least kPieceBytesMin
  LinkGraph graph;                   // empty: every two ranks have a link
  std::vector<LinkCost> link_costs;  // (ranks, ranks), symmetric; empty: a usual link's
  SumAlgorithm algorithm = SumAlgorithm::kAuto;
  Wire wire = Wire::kF32;  // of sums of at least `wire_rows_min` rows
  int wire_rows_min = 32;  // beyond the rows of decode: prompts only

  int name_of(int rank) const { return first_rank + rank; }
};

}  // namespace lockstep
