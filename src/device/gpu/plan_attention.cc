// The plan of attention: each row, that is a head of a token, has a workgroup. Where rows are few
// and long their pages are shared among workgroups, and a second dispatch takes the parts in order.
#include <algorithm>

#include "base/check.h"
#include "device/gpu/emit.h"
#include "device/gpu/plan.h"

namespace lockstep::gpu {
namespace {

constexpr size_t kStateBytes = 8;  // maximum and sum
constexpr int kValueDimMax = 512;  // 64 * kColumnsMax in attention.glsl
// Workgroups that keep a GPU busy.
constexpr size_t kGroupsEnough = 1024;

// A page's part of a row: columns of values, their maximum and sum, as place_of_part() has it.
size_t part_bytes(const Attention& op) {
  return (static_cast<size_t>(op.pages.value_dim) + 2) * 4;
}

}  // namespace

void Planner::plan(const Attention& op) {
  if (op.heads == 0 || op.tokens == 0) return;
  LOCKSTEP_CHECK((op.chosen == 0 && !op.keys_are_rows) || op.window == 0);
  LOCKSTEP_CHECK(!op.keys_are_rows || op.pages.value_dim == op.pages.head_dim);
  const Split split = split_of(op);
  if (split.pages > 0) return plan_split_attention(op, split);
  plan_unshared(op, nullptr);
}

void Planner::plan_unshared(const Attention& op, const AttentionEntries* entries) {
  LOCKSTEP_CHECK(op.pages.value_dim <= kValueDimMax);
  // With few pages to a dispatch, states are in scratch memory between dispatches.
  const auto tokens = static_cast<size_t>(op.tokens), heads = static_cast<size_t>(op.heads);
  const size_t round =
      options_.attention_pages_max == 0 ? tokens : own_scratch().bytes / (heads * kStateBytes);
  LOCKSTEP_CHECK(round > 0);
  for (size_t begin = 0; begin < tokens; begin += round) {
    const size_t count = std::min(round, tokens - begin);
    plan_attention(op, entries, begin, count);
  }
}

// A row that attends to chosen positions, or to keys in rows, has one workgroup.
Planner::Split Planner::split_of(const Attention& op) const {
  if (op.chosen > 0 || op.keys_are_rows) return {};
  const auto rows = static_cast<size_t>(op.tokens) * static_cast<size_t>(op.heads);
  auto pages = static_cast<size_t>(op.pages_reached);
  if (op.window > 0) {
    // A window may begin inside a page and end inside another.
    pages = std::min(pages, static_cast<size_t>(op.window) / kPositionsOfPage + 2);
  }
  size_t sharers = std::min(groups_of(kGroupsEnough, rows), pages);
  if (sharers > 1 && options_.attention_pages_max > 0) {
    sharers = std::max(sharers, groups_of(pages, options_.attention_pages_max));
  }
  const bool fits = rows * pages * part_bytes(op) <= own_scratch().bytes;
  if (pages < options_.split_pages_least || sharers < 2 || !fits) return {};
  return {static_cast<uint32_t>(sharers), static_cast<uint32_t>(pages)};
}

Planner::AttentionRanges Planner::ranges_of(const Attention& op, size_t begin, size_t count) const {
  const auto heads = static_cast<size_t>(op.heads);
  const LayerPages& pages = op.pages;
  AttentionRanges ranges{
      .query = rows_at(op.query, begin, count, heads * static_cast<size_t>(pages.head_dim)),
      .output = rows_at(op.output, begin, count, heads * static_cast<size_t>(pages.value_dim)),
      .positions = rows_at(op.positions, begin, count, 1),
      .offsets = rows_at(op.list_offsets, begin, count, 1),
      .lists = memory_.whole(op.page_lists),
      .sinks = op.has_sinks ? memory_.place(op.sinks, heads) : MemoryRange{}};
  ranges.lists.is_partial = true;
  if (op.chosen > 0) {
    ranges.mask = rows_at(op.mask, begin, count, static_cast<size_t>(op.mask_words));
    ranges.mask.is_partial = true;
  }
  return ranges;
}

AttentionParams Planner::params_of(const Attention& op, const AttentionRanges& ranges) const {
  return {.pages = pages_info(op.pages),
          .query = ranges.query.begin,
          .positions = ranges.positions.begin,
          .page_lists = ranges.lists.begin,
          .list_offsets = ranges.offsets.begin,
          .sinks = ranges.sinks.begin,
          .outputs = ranges.output.begin,
          .heads = static_cast<uint32_t>(op.heads),
          .head_begin = static_cast<uint32_t>(op.head_begin),
          .heads_per_kv = static_cast<uint32_t>(op.heads_per_kv),
          .kv_begin = static_cast<uint32_t>(op.kv_begin),
          .window = static_cast<uint32_t>(op.window),
          .scale = op.scale,
          .mask = ranges.mask.begin,
          .mask_words = static_cast<uint32_t>(op.mask_words),
          .chosen = static_cast<uint32_t>(op.chosen)};
}

void Planner::plan_split_attention(const Attention& op, const Split& split) {
  LOCKSTEP_CHECK(op.pages.value_dim <= kValueDimMax);
  const auto tokens = static_cast<size_t>(op.tokens), heads = static_cast<size_t>(op.heads);
  const AttentionRanges ranges = ranges_of(op, 0, tokens);
  const MemoryRange parts{own_scratch().begin, tokens * heads * split.pages * part_bytes(op), true};
  AttentionParams params = params_of(op, ranges);
  params.parts = parts.begin;
  params.sharers = split.sharers;
  params.parts_pages = split.pages;
  emit({Kernel::kAttention, {static_cast<uint32_t>(op.pages.kind), 1}}, heads,
       tokens * split.sharers, params,
       {state_of(op.pages), ranges.query, ranges.positions, ranges.offsets, ranges.lists}, {parts});
  const PreparedRows prepared = room_for_heads(user_of(op.output), ranges.output, op);
  params.prepared = prepared.to;
  emit({Kernel::kAttentionMerge, {0, 0, 0, prepared.form}}, heads, tokens, params,
       {parts, ranges.positions, ranges.sinks}, {ranges.output, prepared.prepared.range});
  keep(prepared);
}

// A page takes more turns of a loop where each row of it is taken alone.
void Planner::plan_attention(const Attention& op, const AttentionEntries* entries, size_t begin,
                             size_t count) {
  const auto heads = static_cast<size_t>(op.heads);
  const bool takes_rows = op.chosen > 0 || op.keys_are_rows;
  const Kernel kernel = entries != nullptr ? Kernel::kAttentionCompressed
                        : takes_rows       ? Kernel::kAttentionChosen
                                           : Kernel::kAttention;
  const AttentionRanges ranges = ranges_of(op, begin, count);
  const auto pages = static_cast<uint32_t>(ranges.lists.bytes / Slice::kElementBytes +
                                           (entries != nullptr ? entries->blocks : 0));
  const bool is_cut = options_.attention_pages_max > 0;
  const bool takes_pages = kernel == Kernel::kAttention;
  const uint32_t pages_max = options_.attention_pages_max;
  const uint32_t some = !is_cut ? pages : takes_pages ? pages_max : std::max(1u, pages_max / 2);
  const MemoryRange states =
      is_cut ? MemoryRange{own_scratch().begin, count * heads * kStateBytes} : MemoryRange{};
  const PlanMatrix* user = count == static_cast<size_t>(op.tokens) ? user_of(op.output) : nullptr;
  const PreparedRows prepared = room_for_heads(user, ranges.output, op);
  AttentionParams params = params_of(op, ranges);
  MemoryRange of_entries, entry_offsets;
  if (entries != nullptr && entries->pool > 0) {
    const PagesInfo info = pages_info(entries->pages);
    params.entries = info.values;
    params.entries_page_bytes = info.page_bytes;
    params.pool = static_cast<uint32_t>(entries->pool);
    of_entries = state_of(entries->pages);
    entry_offsets = rows_at(entries->list_offsets, begin, count, 1);
    params.entry_offsets = entry_offsets.begin;
  }
  params.parts = states.begin;
  params.prepared = prepared.to;
  for (uint32_t page = 0; page < pages; page += some) {
    params.page_begin = page;
    params.page_end = std::min(pages, page + some);
    emit({kernel,
          {static_cast<uint32_t>(op.pages.kind), op.keys_are_rows ? 1u : 0u, is_cut ? 1u : 0u,
           prepared.form}},
         heads, count, params,
         {state_of(op.pages), ranges.query, ranges.positions, ranges.offsets, ranges.lists,
          ranges.sinks, states, ranges.mask, of_entries, entry_offsets},
         {ranges.output, states, prepared.prepared.range});
  }
  keep(prepared);
}

// A workgroup has one head, so blocks must not reach into the next one. Its row is that of all
// heads for a matrix that multiplies them together, or its own.
Planner::PreparedRows Planner::room_for_heads(const PlanMatrix* user, const MemoryRange& output,
                                              const Attention& op) {
  if (user == nullptr) return {};
  const auto tokens = static_cast<size_t>(op.tokens), heads = static_cast<size_t>(op.heads);
  const auto columns = static_cast<size_t>(op.pages.value_dim);
  if (columns % kColumnsOfBlock != 0 || !user->has_whole_blocks()) return {};
  if (static_cast<size_t>(user->columns) == columns) {
    return room_for(user, output, tokens * heads, columns, columns);
  }
  return room_for(user, output, tokens, heads * columns, heads * columns);
}

}  // namespace lockstep::gpu
