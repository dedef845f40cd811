// Compressed attention with random shapes, for gpu_operations.h.
#pragma once

#include <algorithm>
#include <vector>

#include "device/gpu_compare.h"
#include "device/gpu_sparse_operations.h"

namespace lockstep::testing {

// Pages whose rows are those of StoreRows: random ones at all positions.
inline LayerPages store_rows(Device& device, Random& random, const SparseSequences& sequences,
                             KvKind kind, int head_dim, Access access = Access::kDevice) {
  const LayerPages pages = sequences.make_pages(
      device, {.kind = kind, .head_dim = head_dim, .value_dim = head_dim}, access);
  const int stride = head_dim + between(random, 0, 9);
  device.queue(
      StoreRows{.pages = pages,
                .rows = put_numbers(device, random, static_cast<size_t>(sequences.stored * stride)),
                .rows_stride = stride,
                .page = sequences.page,
                .slot = sequences.slot,
                .tokens = sequences.stored});
  return pages;
}

// Where the complete entries of all sequences are.
struct EntryPlaces {
  EntryPlaces(const SparseSequences& sequences, int pool) {
    const int slots = std::max(1, kPagePositions / pool);
    for (size_t s = 0; s < sequences.lengths.size(); ++s) {
      const int first = static_cast<int>(s) * sequences.own_pages;
      for (int entry = 0; entry < sequences.lengths[s] / pool; ++entry) {
        last.push_back((entry + 1) * pool - 1);
        offset.push_back(first);
        page.push_back(sequences.list[static_cast<size_t>(first + last.back() / kPagePositions)]);
        slot.push_back(entry % slots);
      }
    }
  }

  std::vector<int32_t> last, offset, page, slot;
};

// Entries made of stored rows, and stored; `made` is where they were before.
inline LayerPages store_entries(Device& device, Random& random, const SparseSequences& sequences,
                                int pool, int columns, Output& made) {
  const LayerPages pages = sequences.make_pages(
      device, {.kind = KvKind::kF32, .head_dim = columns, .value_dim = columns});
  const EntryPlaces places(sequences, pool);
  const auto entries = static_cast<int>(places.last.size());
  if (entries == 0) return pages;
  const bool has_gates = random() % 4 != 0, overlaps = has_gates && random() % 2 == 0;
  const int width = overlaps ? 2 * columns : columns;
  const LayerPages inputs =
      store_rows(device, random, sequences, static_cast<KvKind>(between(random, 0, 3)),
                 has_gates ? 2 * width : width);
  made.count = static_cast<size_t>(entries * columns);
  made.slice = room(device, made.count, Access::kHost);
  device.queue(Compress{.inputs = inputs,
                        .bias = put_numbers(device, random, static_cast<size_t>(pool * width)),
                        .last = put_ints(device, places.last),
                        .page_lists = sequences.lists,
                        .list_offsets = put_ints(device, places.offset),
                        .entries = entries,
                        .pool = pool,
                        .overlaps = overlaps,
                        .columns = columns,
                        .output = made.slice,
                        .has_gates = has_gates});
  device.queue(StoreRows{.pages = pages,
                         .rows = made.slice,
                         .rows_stride = columns,
                         .page = put_ints(device, places.page),
                         .slot = put_ints(device, places.slot),
                         .tokens = entries});
  return pages;
}

// Bits of some entries, and of others that do not exist.
inline Slice random_mask(Device& device, Random& random, size_t words) {
  std::vector<int32_t> mask(words);
  const bool is_sparse = random() % 2 == 0;
  for (int32_t& word : mask) {
    const auto bits = static_cast<int32_t>(random());
    word = is_sparse ? bits & static_cast<int32_t>(random() & random() & random()) : bits;
  }
  return put_ints(device, mask);
}

// Rows and entries, attention over them, and products of that.
inline std::vector<Output> compressed_attention(Device& device, Random& random) {
  constexpr int kPools[] = {0, 1, 2, 4, 16, 64, 128};
  const SparseSequences sequences(device, random);
  const int tokens = sequences.tokens, heads = between(random, 1, 20);
  const int pool = kPools[random() % std::size(kPools)];
  const int head_dim = random() % 2 == 0 ? 32 * between(random, 1, 4) : between(random, 1, 130);
  const auto kind = static_cast<KvKind>(between(random, 0, 3));
  const LayerPages rows = store_rows(device, random, sequences, kind, head_dim, Access::kHost);
  const auto count = static_cast<size_t>(tokens * heads * head_dim);
  std::vector<Output> outputs{
      {room(device, count, Access::kHost), count},
      {rows.values, rows.page_stride * SparseSequences::kPages - rows.values.offset}};
  CompressedAttention op{.rows = rows,
                         .pool = pool,
                         .query = put_numbers(device, random, count),
                         .positions = sequences.at_place,
                         .page_lists = sequences.lists,
                         .list_offsets = sequences.offsets,
                         .entry_offsets = sequences.offsets,
                         .tokens = tokens,
                         .heads = heads,
                         .window = random() % 4 == 0 ? 1000 : between(random, 1, 200),
                         .scale = 0.125f,
                         .has_sinks = random() % 2 == 0,
                         .sinks = put_numbers(device, random, static_cast<size_t>(heads)),
                         .output = outputs.front().slice,
                         .mask_words = 2 * SparseSequences::kPages};
  if (pool > 0) {
    Output made{};
    op.entries = store_entries(device, random, sequences, pool, head_dim, made);
    if (made.count > 0) outputs.push_back(made);
    op.chosen = random() % 2 == 0 ? 0 : between(random, 1, sequences.longest / pool + 1);
    op.mask = random_mask(device, random, static_cast<size_t>(tokens * op.mask_words));
  }
  Output products{};
  const Operation product = multiply_heads(
      device, random, {.tokens = tokens, .heads = heads, .output = op.output}, head_dim, products);
  device.queue(op);
  device.queue(product);
  outputs.push_back(products);
  return outputs;
}

// Some of the positions up to each token's own, which is among them.
inline Slice mask_of_positions(Device& device, Random& random, const SparseSequences& sequences) {
  constexpr size_t kWords = 2 * SparseSequences::kPages;
  std::vector<int32_t> mask(sequences.at.size() * kWords, 0);
  const uint32_t every = 1 + random() % 40;
  for (size_t token = 0; token < sequences.at.size(); ++token) {
    for (int position = 0; position <= sequences.at[token]; ++position) {
      if (position < sequences.at[token] && random() % every != 0) continue;
      int32_t& word = mask[token * kWords + static_cast<size_t>(position / 32)];
      word = static_cast<int32_t>(static_cast<uint32_t>(word) | 1u << position % 32);
    }
  }
  return put_ints(device, mask);
}

// Keys and values of several heads in rows, attention over all of them or some, and products of
// that.
inline std::vector<Output> row_attention(Device& device, Random& random) {
  const SparseSequences sequences(device, random);
  // Blocks of 24 heads are stored by several workgroups.
  const int tokens = sequences.tokens, kv_heads = random() % 8 == 0 ? 24 : between(random, 1, 3);
  const int heads_per_kv = between(random, 1, 5), heads = kv_heads * heads_per_kv;
  const int head_dim = random() % 2 == 0 ? 32 * between(random, 1, 4) : between(random, 1, 130);
  const LayerPages pages = sequences.make_pages(device,
                                                {.kind = static_cast<KvKind>(between(random, 0, 3)),
                                                 .head_dim = head_dim,
                                                 .value_dim = head_dim,
                                                 .kv_heads = kv_heads},
                                                Access::kHost);
  LayerPages of_keys = pages;
  of_keys.values = pages.keys;
  const int stride = kv_heads * head_dim + between(random, 0, 9);
  for (const LayerPages& to : {of_keys, pages}) {
    device.queue(StoreRows{
        .pages = to,
        .rows = put_numbers(device, random, static_cast<size_t>(sequences.stored * stride)),
        .rows_stride = stride,
        .page = sequences.page,
        .slot = sequences.slot,
        .tokens = sequences.stored});
  }
  const auto count = static_cast<size_t>(tokens * heads * head_dim);
  const int kv_begin = between(random, 0, 2);
  Attention op{.pages = pages,
               .query = put_numbers(device, random, count),
               .positions = sequences.at_place,
               .page_lists = sequences.lists,
               .list_offsets = sequences.offsets,
               .pages_reached = random() % 2 == 0 ? 0 : SparseSequences::kPages,
               .tokens = tokens,
               .heads = heads,
               .head_begin = kv_begin * heads_per_kv,
               .heads_per_kv = heads_per_kv,
               .kv_begin = kv_begin,
               .scale = 0.125f,
               .has_sinks = random() % 2 == 0,
               .sinks = put_numbers(device, random, static_cast<size_t>(heads)),
               .output = room(device, count, Access::kHost),
               .keys_are_rows = true};
  if (random() % 2 == 0) {
    op.chosen = between(random, 1, sequences.longest);
    op.mask = mask_of_positions(device, random, sequences);
    op.mask_words = 2 * SparseSequences::kPages;
  }
  Output products{};
  const Operation product = multiply_heads(device, random, op, head_dim, products);
  device.queue(op);
  device.queue(product);
  return {{pages.keys, pages.page_stride * SparseSequences::kPages}, {op.output, count}, products};
}

}  // namespace lockstep::testing
