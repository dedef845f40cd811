// The plan of what comes before attention over chosen positions: the norm of the index's key, keys
// of pools, the scores of positions or pools, and the choice.
#include <algorithm>

#include "base/check.h"
#include "device/gpu/emit.h"
#include "device/gpu/plan.h"

namespace lockstep::gpu {
namespace {

static_assert(kPositionsOfPage == kGroupSize);  // an invocation for each position

size_t page_keys(int pool) {
  LOCKSTEP_CHECK(pool > 0 && kPagePositions % pool == 0);
  return static_cast<size_t>(kPagePositions / pool);
}

}  // namespace

void Planner::plan(const LayerNorm& op) {
  if (op.tokens == 0) return;
  const auto tokens = static_cast<size_t>(op.tokens), columns = static_cast<size_t>(op.columns);
  const MemoryRange x = memory_.place(op.x, tokens * columns);
  const MemoryRange weight = memory_.place(op.weight, columns);
  const MemoryRange bias = memory_.place(op.bias, columns);
  emit({Kernel::kLayerNorm, {}}, tokens, 1,
       LayerNormParams{.x = x.begin,
                       .weight = weight.begin,
                       .bias = bias.begin,
                       .columns = static_cast<uint32_t>(columns),
                       .epsilon = op.epsilon},
       {x, weight, bias}, {x});
}

void Planner::plan(const PoolKeys& op) {
  if (op.tokens == 0 || op.pools.head_dim == 0) return;
  const auto tokens = static_cast<size_t>(op.tokens);
  const auto columns = static_cast<size_t>(op.pools.head_dim);
  LOCKSTEP_CHECK(op.inputs.head_dim == 2 * op.pools.head_dim && page_keys(op.pool) > 0);
  const MemoryRange bias = memory_.place(op.bias, static_cast<size_t>(op.pool) * columns);
  const MemoryRange page = memory_.place(op.page, tokens), slot = memory_.place(op.slot, tokens);
  emit({Kernel::kPoolKey, {static_cast<uint32_t>(op.inputs.kind)}}, groups_of(columns, kGroupSize),
       tokens,
       PoolKeyParams{.inputs = pages_info(op.inputs),
                     .pools = pages_info(op.pools),
                     .bias = bias.begin,
                     .page = page.begin,
                     .slot = slot.begin,
                     .pool = static_cast<uint32_t>(op.pool)},
       {state_of(op.inputs), bias, page, slot}, {state_of(op.pools)});
}

void Planner::plan(const IndexScores& op) {
  if (op.tokens == 0) return;
  const auto tokens = static_cast<size_t>(op.tokens), heads = static_cast<size_t>(op.heads);
  const auto stride = static_cast<size_t>(op.stride);
  const size_t width = heads * static_cast<size_t>(op.pages.head_dim);
  size_t pages = stride / page_keys(op.pool);
  if (op.pages_reached > 0) pages = std::min(pages, static_cast<size_t>(op.pages_reached));
  const MemoryRange query = memory_.place(op.query, tokens * width);
  const MemoryRange weights = memory_.place(op.weights, tokens * heads);
  const MemoryRange positions = memory_.place(op.positions, tokens);
  const MemoryRange offsets = memory_.place(op.list_offsets, tokens);
  MemoryRange lists = memory_.whole(op.page_lists);
  lists.is_partial = true;
  MemoryRange scores = memory_.place(op.scores, tokens * stride);
  scores.is_partial = true;
  emit({Kernel::kIndexScores, {static_cast<uint32_t>(op.pages.kind)}},
       groups_of(pages * page_keys(op.pool), kGroupSize), tokens,
       IndexScoresParams{.pages = pages_info(op.pages),
                         .query = query.begin,
                         .weights = weights.begin,
                         .positions = positions.begin,
                         .page_lists = lists.begin,
                         .list_offsets = offsets.begin,
                         .scores = scores.begin,
                         .heads = static_cast<uint32_t>(op.heads),
                         .chosen = static_cast<uint32_t>(op.chosen),
                         .stride = static_cast<uint32_t>(op.stride),
                         .pool = static_cast<uint32_t>(op.pool)},
       {state_of(op.pages), query, weights, positions, offsets, lists}, {scores});
}

void Planner::plan(const ChoosePositions& op) {
  if (op.tokens == 0) return;
  const auto tokens = static_cast<size_t>(op.tokens);
  MemoryRange scores = memory_.place(op.scores, tokens * static_cast<size_t>(op.stride));
  scores.is_partial = true;
  const MemoryRange positions = memory_.place(op.positions, tokens);
  MemoryRange mask = memory_.place(op.mask, tokens * static_cast<size_t>(op.mask_words));
  mask.is_partial = true;
  emit({Kernel::kChoosePositions, {}}, tokens, 1,
       ChoosePositionsParams{.scores = scores.begin,
                             .positions = positions.begin,
                             .mask = mask.begin,
                             .stride = static_cast<uint32_t>(op.stride),
                             .mask_words = static_cast<uint32_t>(op.mask_words),
                             .chosen = static_cast<uint32_t>(op.chosen / op.pool),
                             .pool = static_cast<uint32_t>(op.pool)},
       {scores, positions}, {mask});
}

}  // namespace lockstep::gpu
