// The plan of compressed attention: the rows of positions and entries, entries from rows, and
// attention over both.
#include <algorithm>

#include "base/check.h"
#include "device/gpu/emit.h"
#include "device/gpu/plan.h"

namespace lockstep::gpu {
namespace {

// Rows of one head are its values; it has no keys.
LayerPages with_values_alone(LayerPages pages) {
  pages.keys = pages.values;
  return pages;
}

}  // namespace

void Planner::plan(const StoreRows& op) {
  if (op.tokens == 0 || op.pages.kv_heads == 0) return;
  LOCKSTEP_CHECK(op.pages.value_dim == op.pages.head_dim &&
                 op.pages.kv_heads * op.pages.head_dim <= op.rows_stride);
  const LayerPages pages = with_values_alone(op.pages);
  const auto tokens = static_cast<size_t>(op.tokens), stride = static_cast<size_t>(op.rows_stride);
  const auto heads = static_cast<size_t>(pages.kv_heads);
  const MemoryRange rows =
      memory_.place(op.rows, (tokens - 1) * stride + heads * static_cast<size_t>(pages.head_dim));
  const MemoryRange page = memory_.place(op.page, tokens), slot = memory_.place(op.slot, tokens);
  emit({Kernel::kStoreKv, {static_cast<uint32_t>(pages.kind)}},
       groups_of(heads * static_cast<size_t>(kv_blocks(pages.head_dim)), kGroupSize), tokens,
       StoreParams{.pages = pages_info(pages),
                   .values = rows.begin,
                   .page = page.begin,
                   .slot = slot.begin,
                   .values_stride = static_cast<uint32_t>(stride)},
       {rows, page, slot}, {state_of(pages)});
}

void Planner::plan(const Compress& op) {
  if (op.entries == 0 || op.columns == 0) return;
  const auto entries = static_cast<size_t>(op.entries), columns = static_cast<size_t>(op.columns);
  const size_t width = columns * (op.overlaps ? 2 : 1);
  LOCKSTEP_CHECK(op.pool > 0 && (op.has_gates || !op.overlaps));
  LOCKSTEP_CHECK(static_cast<size_t>(op.inputs.head_dim) == (op.has_gates ? 2 : 1) * width);
  const LayerPages inputs = with_values_alone(op.inputs);
  const MemoryRange bias =
      op.has_gates ? memory_.place(op.bias, static_cast<size_t>(op.pool) * width) : MemoryRange{};
  const MemoryRange last = memory_.place(op.last, entries);
  const MemoryRange offsets = memory_.place(op.list_offsets, entries);
  MemoryRange lists = memory_.whole(op.page_lists);
  lists.is_partial = true;
  const MemoryRange output = memory_.place(op.output, entries * columns);
  emit({Kernel::kCompress, {static_cast<uint32_t>(inputs.kind), op.has_gates ? 0u : 1u}},
       groups_of(columns, kGroupSize), entries,
       CompressParams{.inputs = pages_info(inputs),
                      .bias = bias.begin,
                      .last = last.begin,
                      .page_lists = lists.begin,
                      .list_offsets = offsets.begin,
                      .outputs = output.begin,
                      .pool = static_cast<uint32_t>(op.pool),
                      .overlaps = op.overlaps ? 1u : 0u,
                      .columns = static_cast<uint32_t>(columns)},
       {state_of(inputs), bias, last, lists, offsets}, {output});
}

// Attention with one head of keys for all, whose pages follow those of the entries.
void Planner::plan(const CompressedAttention& op) {
  if (op.heads == 0 || op.tokens == 0) return;
  LOCKSTEP_CHECK(op.rows.value_dim == op.rows.head_dim && op.window > 0);
  LOCKSTEP_CHECK(op.pool == 0 || op.entries.head_dim == op.rows.head_dim);
  AttentionEntries entries{
      .pages = with_values_alone(op.entries), .pool = op.pool, .list_offsets = op.entry_offsets};
  if (op.pool > 0) {
    const size_t pages = memory_.whole(op.page_lists).bytes / Slice::kElementBytes;
    entries.blocks = groups_of(pages, static_cast<size_t>(op.pool));
  }
  plan_unshared({.pages = with_values_alone(op.rows),
                 .query = op.query,
                 .positions = op.positions,
                 .page_lists = op.page_lists,
                 .list_offsets = op.list_offsets,
                 .tokens = op.tokens,
                 .heads = op.heads,
                 .heads_per_kv = op.heads,
                 .window = op.window,
                 .scale = op.scale,
                 .has_sinks = op.has_sinks,
                 .sinks = op.sinks,
                 .output = op.output,
                 .chosen = op.chosen,
                 .mask = op.mask,
                 .mask_words = op.mask_words},
                &entries);
}

}  // namespace lockstep::gpu
