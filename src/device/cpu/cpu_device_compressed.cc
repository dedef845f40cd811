// How the CPU runs the operations of compressed attention.
#include <algorithm>

#include "base/check.h"
#include "device/cpu/cpu_device.h"

namespace lockstep {
namespace {

// The work of one kernel call: heads of attention, or columns of an entry.
constexpr int kHeadsOfPiece = 16;
constexpr int kColumnsOfPiece = 128;

}  // namespace

void CpuDevice::run(const StoreRows& op) {
  const auto tokens = static_cast<size_t>(op.tokens), stride = static_cast<size_t>(op.rows_stride);
  LOCKSTEP_CHECK(op.pages.value_dim == op.pages.head_dim &&
                 op.pages.kv_heads * op.pages.head_dim <= op.rows_stride);
  const StoreKvArgs args{.pages = page_args(op.pages),
                         .keys = nullptr,
                         .values = floats(op.rows, tokens * stride),
                         .keys_stride = 0,
                         .values_stride = stride,
                         .page = ints(op.page, tokens),
                         .slot = ints(op.slot, tokens)};
  store(args, op.tokens, 2 * stride);
}

void CpuDevice::run(const Compress& op) {
  if (op.entries == 0) return;
  const auto entries = static_cast<size_t>(op.entries), columns = static_cast<size_t>(op.columns);
  const size_t width = columns * (op.overlaps ? 2 : 1);
  LOCKSTEP_CHECK(op.pool > 0 && (op.has_gates || !op.overlaps));
  LOCKSTEP_CHECK(static_cast<size_t>(op.inputs.head_dim) == (op.has_gates ? 2 : 1) * width);
  const PageArgs inputs = page_args(op.inputs);
  const float* bias =
      op.has_gates ? floats(op.bias, static_cast<size_t>(op.pool) * width) : nullptr;
  const int32_t* last = ints(op.last, entries);
  const int32_t* offsets = ints(op.list_offsets, entries);
  const int32_t* lists = ints(op.page_lists, 0);
  float* output = floats(op.output, entries * columns);
  const int pieces = (op.columns + kColumnsOfPiece - 1) / kColumnsOfPiece;
  const size_t cost = static_cast<size_t>(32 * op.pool * std::min(op.columns, kColumnsOfPiece));
  parallel(op.entries * pieces, cost, [&](int begin, int end) {
    for (int item = begin; item < end; ++item) {
      const auto entry = static_cast<size_t>(item / pieces);
      const int first = item % pieces * kColumnsOfPiece;
      kernels_.compress({.inputs = inputs,
                         .bias = bias,
                         .page_list = lists + offsets[entry],
                         .last = last[entry],
                         .pool = op.pool,
                         .overlaps = op.overlaps,
                         .columns = op.columns,
                         .column_begin = first,
                         .column_end = std::min(op.columns, first + kColumnsOfPiece),
                         .output = output + entry * columns});
    }
  });
}

// A piece of work has some heads of a token.
void CpuDevice::run(const CompressedAttention& op) {
  if (op.heads == 0 || op.tokens == 0) return;
  const auto tokens = static_cast<size_t>(op.tokens), heads = static_cast<size_t>(op.heads);
  const auto head_dim = static_cast<size_t>(op.rows.head_dim);
  LOCKSTEP_CHECK(op.rows.head_dim <= kChosenKeyMax && op.window > 0);
  LOCKSTEP_CHECK(op.pool == 0 || op.entries.head_dim == op.rows.head_dim);
  const float* query = floats(op.query, tokens * heads * head_dim);
  const float* sinks = op.has_sinks ? floats(op.sinks, heads) : nullptr;
  const int32_t* positions = ints(op.positions, tokens);
  const int32_t* offsets = ints(op.list_offsets, tokens);
  const int32_t* of_entries = op.pool > 0 ? ints(op.entry_offsets, tokens) : offsets;
  const int32_t* lists = ints(op.page_lists, 0);
  const auto mask_words = static_cast<size_t>(op.mask_words);
  const uint32_t* mask =
      op.chosen > 0 && op.pool > 0 ? words(op.mask, tokens * mask_words) : nullptr;
  float* output = floats(op.output, tokens * heads * head_dim);
  const PageArgs rows = page_args(op.rows);
  const PageArgs entries = op.pool > 0 ? page_args(op.entries) : PageArgs{};
  const int most = *std::max_element(positions, positions + tokens) + 1;
  const int of_token = op.pool > 0 ? most / op.pool : 0;  // entries
  const int seen = op.chosen > 0 ? std::min(op.chosen, of_token) : of_token;
  const int pieces = (op.heads + kHeadsOfPiece - 1) / kHeadsOfPiece;
  const size_t cost =
      2 * head_dim *
      static_cast<size_t>((std::min(op.window, most) + seen) * std::min(op.heads, kHeadsOfPiece));
  parallel(op.tokens * pieces, cost, [&](int begin, int end) {
    for (int item = begin; item < end; ++item) {
      const auto token = static_cast<size_t>(item / pieces);
      const int first = item % pieces * kHeadsOfPiece;
      const size_t at = (token * heads + static_cast<size_t>(first)) * head_dim;
      const bool is_chosen = mask != nullptr && (positions[token] + 1) / op.pool > op.chosen;
      kernels_.compressed_attention({.rows = rows,
                                     .entries = entries,
                                     .pool = op.pool,
                                     .page_list = lists + offsets[token],
                                     .entry_list = lists + of_entries[token],
                                     .position = positions[token],
                                     .window = op.window,
                                     .query = query + at,
                                     .heads = std::min(op.heads - first, kHeadsOfPiece),
                                     .scale = op.scale,
                                     .sinks = sinks ? sinks + first : nullptr,
                                     .chosen = is_chosen ? mask + token * mask_words : nullptr,
                                     .output = output + at});
    }
  });
}

}  // namespace lockstep
