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

// The positions of a sequence in pages, and some of its tokens.
struct SparseSequence {
  static constexpr int kPages = 7;

  SparseSequence(Device& device, Random& random)
      : positions(between(random, 2, kPages * kPagePositions)), tokens(between(random, 1, 4)) {
    std::vector<int32_t> list(kPages), of, in;
    for (int i = 0; i < kPages; ++i) list[static_cast<size_t>(i)] = i;
    std::shuffle(list.begin(), list.end(), random);
    for (int i = 0; i < positions; ++i) {
      of.push_back(list[static_cast<size_t>(i / kPagePositions)]);
      in.push_back(i % kPagePositions);
    }
    for (int i = 0; i < tokens; ++i) at.push_back(between(random, 0, positions - 1));
    page = put_ints(device, of);
    slot = put_ints(device, in);
    lists = put_ints(device, list);
    at_place = put_ints(device, at);
    offsets = put_ints(device, std::vector<int32_t>(static_cast<size_t>(tokens), 0));
  }

  // Stores random rows, with garbage in the slots beyond them.
  LayerPages store(Device& device, Random& random, LayerPages pages, int stored_values) const {
    const size_t head = page_head_stride(pages.kind, pages.head_dim) / Slice::kElementBytes;
    pages.page_stride = 2 * head;
    pages.keys = put(device, std::vector<float>(2 * head * kPages, 1e30f));
    pages.values = {pages.keys.buffer, head};
    pages.kv_heads = 1;
    const auto count = static_cast<size_t>(positions * pages.head_dim);
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
                         .tokens = positions});
    return pages;
  }

  int positions;
  int tokens;
  std::vector<int32_t> at;
  Slice page, slot, lists, offsets, at_place;
};

struct Choice {
  static constexpr int kStride = SparseSequence::kPages * kPagePositions;
  static constexpr int kMaskWords = kStride / 32;

  int chosen = 0;
  Slice scores, mask;
};

// Keys of an index and the choice of positions by them. Some tokens have no more positions than are
// chosen; without weights all scores are equal.
inline Choice choose(Device& device, Random& random, const SparseSequence& sequence, KvKind kind) {
  const int tokens = sequence.tokens, heads = between(random, 1, 9);
  const int head_dim = 4 * between(random, 1, 20);
  const LayerPages pages =
      sequence.store(device, random, {.kind = kind, .head_dim = head_dim, .value_dim = 0}, 0);
  const auto count = static_cast<size_t>(tokens * heads);
  const bool has_weights = random() % 4 != 0;
  const Slice weights = has_weights ? put_numbers(device, random, count)
                                    : put(device, std::vector<float>(count, 0.0f));
  Choice choice{random() % 3 == 0 ? 400 : between(random, 1, std::max(1, sequence.positions)),
                room(device, static_cast<size_t>(tokens * Choice::kStride), Access::kHost),
                put(device, std::vector<float>(static_cast<size_t>(tokens * Choice::kMaskWords)),
                    Access::kHost)};
  device.queue(
      IndexScores{.pages = pages,
                  .query = put_numbers(device, random, count * static_cast<size_t>(head_dim)),
                  .weights = weights,
                  .positions = sequence.at_place,
                  .page_lists = sequence.lists,
                  .list_offsets = sequence.offsets,
                  .pages_reached = random() % 2 == 0 ? 0 : SparseSequence::kPages,
                  .tokens = tokens,
                  .heads = heads,
                  .chosen = choice.chosen,
                  .scores = choice.scores,
                  .stride = Choice::kStride});
  device.queue(ChoosePositions{.scores = choice.scores,
                               .stride = Choice::kStride,
                               .positions = sequence.at_place,
                               .tokens = tokens,
                               .chosen = choice.chosen,
                               .mask = choice.mask,
                               .mask_words = Choice::kMaskWords});
  return choice;
}

// The choice of positions, attention over them, and products of that.
inline std::vector<Output> sparse_attention(Device& device, Random& random) {
  const SparseSequence sequence(device, random);
  const auto kind = static_cast<KvKind>(between(random, 0, 3));
  const Choice choice = choose(device, random, sequence, kind);
  const int tokens = sequence.tokens, heads = between(random, 1, 20);
  const int head_dim = 4 * between(random, 1, 40);
  const bool has_blocks = head_dim >= 32 && random() % 2 == 0;
  const int value_dim =
      has_blocks ? 32 * between(random, 1, head_dim / 32) : between(random, 1, head_dim);
  const LayerPages pages = sequence.store(
      device, random, {.kind = kind, .head_dim = head_dim, .value_dim = value_dim}, head_dim);
  const auto count = static_cast<size_t>(tokens * heads * value_dim);
  const Slice output = room(device, count, Access::kHost);
  const bool has_sinks = random() % 4 == 0;
  const Attention op{
      .pages = pages,
      .query = put_numbers(device, random, static_cast<size_t>(tokens * heads * head_dim)),
      .positions = sequence.at_place,
      .page_lists = sequence.lists,
      .list_offsets = sequence.offsets,
      .tokens = tokens,
      .heads = heads,
      .heads_per_kv = heads,
      .scale = 0.125f,
      .has_sinks = has_sinks,
      .sinks = put_numbers(device, random, static_cast<size_t>(heads)),
      .output = output,
      .chosen = choice.chosen,
      .mask = choice.mask,
      .mask_words = Choice::kMaskWords};
  Output products{};
  const Operation product = multiply_heads(device, random, op, value_dim, products);
  device.queue(op);
  device.queue(product);
  std::vector<Output> outputs{
      {choice.mask, static_cast<size_t>(tokens * Choice::kMaskWords)}, {output, count}, products};
  for (size_t token = 0; token < sequence.at.size(); ++token) {
    const int position = sequence.at[token];
    if (position < choice.chosen) continue;
    outputs.push_back(
        {{choice.scores.buffer, token * Choice::kStride}, static_cast<size_t>(position) + 1});
  }
  return outputs;
}

}  // namespace lockstep::testing
