// Sparse attention with random shapes, for gpu_operations.h.
#pragma once

#include <algorithm>
#include <vector>

#include "device/gpu_compare.h"
#include "kernels/kernels.h"

namespace lockstep::testing {

inline std::vector<Output> layer_norm(Device& device, Random& random) {
  const int tokens = between(random, 1, 6), columns = between(random, 1, 300);
  const auto count = static_cast<size_t>(tokens * columns);
  const Slice x = put_numbers(device, random, count, Access::kHost);
  device.queue(LayerNorm{.x = x,
                         .weight = put_numbers(device, random, static_cast<size_t>(columns)),
                         .bias = put_numbers(device, random, static_cast<size_t>(columns)),
                         .tokens = tokens,
                         .columns = columns,
                         .epsilon = 1e-6f});
  return {{x, count}};
}

// The positions of one to three sequences in pages, and some of their tokens.
struct SparseSequences {
  static constexpr int kPages = 7;

  SparseSequences(Device& device, Random& random) : tokens(between(random, 1, 4)) {
    const int sequences = between(random, 1, 3);
    own_pages = kPages / sequences;
    std::vector<int32_t> of, in, first;
    list.resize(kPages);
    for (int i = 0; i < kPages; ++i) list[static_cast<size_t>(i)] = i;
    std::shuffle(list.begin(), list.end(), random);
    for (int s = 0; s < sequences; ++s) {
      lengths.push_back(between(random, 2, own_pages * kPagePositions));
      for (int i = 0; i < lengths.back(); ++i) {
        of.push_back(list[static_cast<size_t>(s * own_pages + i / kPagePositions)]);
        in.push_back(i % kPagePositions);
      }
    }
    for (int i = 0; i < tokens; ++i) {
      const int sequence = between(random, 0, sequences - 1);
      first.push_back(sequence * own_pages);
      at.push_back(between(random, 0, lengths[static_cast<size_t>(sequence)] - 1));
    }
    stored = static_cast<int>(of.size());
    longest = *std::max_element(lengths.begin(), lengths.end());
    page = put_ints(device, of);
    slot = put_ints(device, in);
    lists = put_ints(device, list);
    at_place = put_ints(device, at);
    offsets = put_ints(device, first);
  }

  // Pages of one head, if it is not said, with garbage in all slots.
  LayerPages make_pages(Device& device, LayerPages pages, Access access = Access::kDevice) const {
    pages.kv_heads = std::max(1, pages.kv_heads);
    const size_t heads = static_cast<size_t>(pages.kv_heads) *
                         page_head_stride(pages.kind, pages.head_dim) / Slice::kElementBytes;
    pages.page_stride = 2 * heads;
    pages.keys = put(device, std::vector<float>(2 * heads * kPages, 1e30f), access);
    pages.values = {pages.keys.buffer, heads};
    return pages;
  }
  // Stores random rows, with garbage in the slots beyond them.
  LayerPages store(Device& device, Random& random, const LayerPages& kind,
                   int stored_values) const {
    const LayerPages pages = make_pages(device, kind);
    const auto count = static_cast<size_t>(stored * pages.head_dim);
    const Slice rows = put_numbers(device, random, count);
    LayerPages whole = pages;
    whole.value_dim = stored_values;
    device.queue(StoreKv{.pages = whole,
                         .keys = rows,
                         .values = rows,
                         .keys_stride = pages.head_dim,
                         .values_stride = pages.head_dim,
                         .page = page,
                         .slot = slot,
                         .tokens = stored});
    return pages;
  }

  int tokens;
  int own_pages = 0;          // of a sequence
  std::vector<int32_t> list;  // of all sequences
  std::vector<int> lengths;   // in positions
  int stored = 0;             // positions of all sequences
  int longest = 0;
  std::vector<int32_t> at;
  Slice page, slot, lists, offsets, at_place;
};

struct Choice {
  static constexpr int kMaskWords = SparseSequences::kPages * kPagePositions / 32;

  int pool = 1;
  int chosen = 0;
  int stride = 0;
  Slice scores, mask;
  LayerPages pages{};

  // The first position whose token chooses.
  int first() const { return chosen + pool - 1; }
};

// Keys of an index, of positions or of pools.
inline LayerPages store_index(Device& device, Random& random, const SparseSequences& sequences,
                              KvKind kind, int pool, int head_dim) {
  if (pool == 1) {
    return sequences.store(device, random, {.kind = kind, .head_dim = head_dim, .value_dim = 0}, 0);
  }
  const LayerPages inputs =
      sequences.store(device, random, {.kind = kind, .head_dim = 2 * head_dim, .value_dim = 0}, 0);
  const LayerPages pools = sequences.make_pages(
      device, {.kind = KvKind::kF32, .head_dim = head_dim, .value_dim = 0}, Access::kHost);
  device.queue(PoolKeys{.inputs = inputs,
                        .pools = pools,
                        .bias = put_numbers(device, random, static_cast<size_t>(pool * head_dim)),
                        .page = sequences.page,
                        .slot = sequences.slot,
                        .tokens = sequences.stored,
                        .pool = pool});
  return pools;
}

// Keys of an index and the choice of positions by them. Some tokens have no more positions than are
// chosen; without weights all scores are equal.
inline Choice choose(Device& device, Random& random, const SparseSequences& sequences,
                     KvKind kind) {
  constexpr int kPools[] = {1, 1, 2, 4, 16, 64};
  const int tokens = sequences.tokens, heads = between(random, 1, 9);
  const int head_dim = 4 * between(random, 1, 20), pool = kPools[random() % std::size(kPools)];
  Choice choice{.pool = pool,
                .pages = store_index(device, random, sequences, kind, pool, head_dim)};
  const auto count = static_cast<size_t>(tokens * heads);
  const bool has_weights = random() % 4 != 0;
  const Slice weights = has_weights ? put_numbers(device, random, count)
                                    : put(device, std::vector<float>(count, 0.0f));
  const int chosen = random() % 3 == 0 ? 400 : between(random, 1, sequences.longest);
  choice.chosen = std::max(1, chosen / pool) * pool;
  choice.stride = SparseSequences::kPages * kPagePositions / pool;
  choice.scores = room(device, static_cast<size_t>(tokens * choice.stride), Access::kHost);
  choice.mask = put(device, std::vector<float>(static_cast<size_t>(tokens * Choice::kMaskWords)),
                    Access::kHost);
  device.queue(
      IndexScores{.pages = choice.pages,
                  .pool = pool,
                  .query = put_numbers(device, random, count * static_cast<size_t>(head_dim)),
                  .weights = weights,
                  .positions = sequences.at_place,
                  .page_lists = sequences.lists,
                  .list_offsets = sequences.offsets,
                  .pages_reached = random() % 2 == 0 ? 0 : SparseSequences::kPages,
                  .tokens = tokens,
                  .heads = heads,
                  .chosen = choice.chosen,
                  .scores = choice.scores,
                  .stride = choice.stride});
  device.queue(ChoosePositions{.scores = choice.scores,
                               .stride = choice.stride,
                               .positions = sequences.at_place,
                               .tokens = tokens,
                               .chosen = choice.chosen,
                               .pool = pool,
                               .mask = choice.mask,
                               .mask_words = Choice::kMaskWords});
  return choice;
}

// The mask, the keys of pools, and the scores of those that the tokens choose from.
inline std::vector<Output> outputs_of(const Choice& choice, const SparseSequences& sequences) {
  std::vector<Output> outputs{
      {choice.mask, static_cast<size_t>(sequences.tokens * Choice::kMaskWords)}};
  if (choice.pool > 1) {
    outputs.push_back({choice.pages.keys, choice.pages.page_stride * SparseSequences::kPages});
  }
  for (size_t token = 0; token < sequences.at.size(); ++token) {
    const int position = sequences.at[token];
    if (position < choice.first()) continue;
    outputs.push_back({{choice.scores.buffer, token * static_cast<size_t>(choice.stride)},
                       static_cast<size_t>((position + 1) / choice.pool)});
  }
  return outputs;
}

// The choice of positions, attention over them, and products of that.
inline std::vector<Output> sparse_attention(Device& device, Random& random) {
  const SparseSequences sequences(device, random);
  const auto kind = static_cast<KvKind>(between(random, 0, 3));
  const Choice choice = choose(device, random, sequences, kind);
  const int tokens = sequences.tokens, heads = between(random, 1, 20);
  const int head_dim = 4 * between(random, 1, 40);
  const bool has_blocks = head_dim >= 32 && random() % 2 == 0;
  const int value_dim =
      has_blocks ? 32 * between(random, 1, head_dim / 32) : between(random, 1, head_dim);
  const LayerPages pages = sequences.store(
      device, random, {.kind = kind, .head_dim = head_dim, .value_dim = value_dim}, head_dim);
  const auto count = static_cast<size_t>(tokens * heads * value_dim);
  const Slice output = room(device, count, Access::kHost);
  const bool has_sinks = random() % 4 == 0;
  const Attention op{
      .pages = pages,
      .query = put_numbers(device, random, static_cast<size_t>(tokens * heads * head_dim)),
      .positions = sequences.at_place,
      .page_lists = sequences.lists,
      .list_offsets = sequences.offsets,
      .tokens = tokens,
      .heads = heads,
      .heads_per_kv = heads,
      .scale = 0.125f,
      .has_sinks = has_sinks,
      .sinks = put_numbers(device, random, static_cast<size_t>(heads)),
      .output = output,
      .chosen = choice.first(),
      .mask = choice.mask,
      .mask_words = Choice::kMaskWords};
  Output products{};
  const Operation product = multiply_heads(device, random, op, value_dim, products);
  device.queue(op);
  device.queue(product);
  std::vector<Output> outputs = outputs_of(choice, sequences);
  outputs.push_back({output, count});
  outputs.push_back(products);
  return outputs;
}

}  // namespace lockstep::testing
