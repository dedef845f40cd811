// The operations of attention, as those of device/operations.h, which has the variant of all: keys
// and values in pages, entries and keys that stand for several positions, and choices of positions.
#pragma once

#include <cstddef>

#include "device/slice.h"
#include "kernels/kernels.h"

namespace lockstep {

// One layer's pages on this rank: see PageArgs in kernels/kernels.h.
struct LayerPages {
  KvKind kind = KvKind::kF32;
  Slice keys;
  Slice values;
  size_t page_stride = 0;  // in elements of a slice
  int head_dim = 0;
  int value_dim = 0;
  int kv_heads = 0;

  bool operator==(const LayerPages&) const = default;
};

struct StoreKv {
  LayerPages pages;
  Slice keys;           // (tokens, kv_heads, head_dim)
  Slice values;         // (tokens, kv_heads, value_dim)
  int keys_stride = 0;  // from one token to the next
  int values_stride = 0;
  Slice page;  // int32 (tokens)
  Slice slot;  // int32 (tokens)
  int tokens = 0;

  bool operator==(const StoreKv&) const = default;
};

struct Attention {
  LayerPages pages;
  Slice query;            // (tokens, heads, head_dim)
  Slice positions;        // int32 (tokens)
  Slice page_lists;       // int32: the page lists of all sequences, one after the other
  Slice list_offsets;     // int32 (tokens): where a token's list begins
  int pages_reached = 0;  // of its list by any token, at most; 0: not known
  int tokens = 0;
  // This rank's query heads [head_begin, head_begin + heads) of the model; head h uses key/value
  // head h / heads_per_kv - kv_begin of the rank's.
  int heads = 0;
  int head_begin = 0;
  int heads_per_kv = 1;
  int kv_begin = 0;
  int window = 0;  // attention covers only the last `window` positions; 0: all
  float scale = 1;
  bool has_sinks = false;
  Slice sinks;   // (heads), see AttentionArgs
  Slice output;  // (tokens, heads, value_dim)
  // Not 0: tokens from this position on attend only to the positions of their masks, and there is
  // no window. Without keys_are_rows the values then hold whole keys
  // (KernelTable::attention_chosen).
  int chosen = 0;
  Slice mask;  // ChoosePositions' output
  int mask_words = 0;
  // Keys are stored as values are, in rows at pages.keys (StoreRows); value_dim is head_dim, and
  // there is no window.
  bool keys_are_rows = false;

  bool operator==(const Attention&) const = default;
};

// Some positions share a key of the index, or `pool` is 1. A pool is complete when its last
// position is; pools begin at multiples of `pool`, which divides kPagePositions. For tokens whose
// position completes a pool: its key, in each column the mean of its positions' keys, weighted by
// the softmax of their gates and of the place's bias (PoolKeyArgs in kernels/kernels.h). Keys and
// gates are the stored ones.
struct PoolKeys {
  LayerPages inputs;  // one head of 2 * columns: a position's key, then its gate; no values
  LayerPages pools;   // float32, one head of `columns`: kPagePositions / pool keys of a page
  Slice bias;         // (pool, columns)
  Slice page;         // int32 (tokens)
  Slice slot;         // int32 (tokens)
  int tokens = 0;
  int pool = 1;

  bool operator==(const PoolKeys&) const = default;
};

// The scores by which a token chooses among its positions or complete pools, for tokens from
// position `chosen` on: see IndexScoresArgs. A factor common to all scores is left out, since it
// changes no choice.
struct IndexScores {
  LayerPages pages;  // one head of keys, and no values
  int pool = 1;
  Slice query;      // (tokens, heads, head_dim)
  Slice weights;    // (tokens, heads)
  Slice positions;  // as those of Attention, like the next three
  Slice page_lists;
  Slice list_offsets;
  int pages_reached = 0;
  int tokens = 0;
  int heads = 0;
  int chosen = 0;
  Slice scores;    // (tokens, stride)
  int stride = 0;  // keys of whole pages

  bool operator==(const IndexScores&) const = default;
};

// mask[token] = the `chosen` positions with the largest scores, for tokens from position
// chosen + pool - 1 on: bit p % 32 of word p / 32. Among equals the lower position wins, a NaN is
// the worst; numbers without a normal exponent are 0. Words of later pages are undefined. With
// pools: the positions of the chosen / pool best complete ones, and those after the last complete
// pool.
struct ChoosePositions {
  Slice scores;  // (tokens, stride), as IndexScores leaves them
  int stride = 0;
  Slice positions;  // int32 (tokens)
  int tokens = 0;
  int chosen = 0;  // a multiple of `pool`
  int pool = 1;
  Slice mask;          // int32 (tokens, mask_words)
  int mask_words = 0;  // two for each page

  bool operator==(const ChoosePositions&) const = default;
};

// Rounds rows to the kind of the pages and writes them at their places, whole (as StoreKv writes
// values of head_dim columns); no keys are written.
struct StoreRows {
  LayerPages pages;  // their keys are not used, and value_dim is head_dim
  Slice rows;        // (tokens, rows_stride), the first kv_heads * head_dim columns of each
  int rows_stride = 0;
  Slice page;  // int32 (tokens)
  Slice slot;  // int32 (tokens)
  int tokens = 0;

  bool operator==(const StoreRows&) const = default;
};

// Entries of compressed attention, each made of `pool` neighbouring positions from a multiple of
// `pool` on, for the pools whose last positions are given: in each column the mean of its members'
// values, weighted by the softmax of their gates plus a bias (CompressArgs in kernels/kernels.h).
// Values and gates are the stored ones. With `overlaps` a row has 2 * columns values and as many
// gates, and the members are the positions of the pool before, with the first columns, and then the
// pool's own, with the second ones; the first pool has only its own. Without gates there is no bias
// and nothing overlaps: a row has only values, and an entry is their mean.
struct Compress {
  LayerPages inputs;   // rows of one head: a position's values, then its gates; no keys
  Slice bias;          // (pool, columns), or (pool, 2 * columns), if there are gates
  Slice last;          // int32 (entries): the position that completes the pool
  Slice page_lists;    // as those of Attention
  Slice list_offsets;  // int32 (entries)
  int entries = 0;
  int pool = 1;
  bool overlaps = false;
  int columns = 0;  // of an entry
  Slice output;     // (entries, columns)
  bool has_gates = true;

  bool operator==(const Compress&) const = default;
};

// Attention over the last `window` positions and over entries of Compress, of which a token at
// position t has (t + 1) / pool. One key of head_dim columns, which is also the value, serves all
// heads. Softmax: the entries in blocks of 64 by their numbers, then the positions of the window in
// pages, then the sink; each block and page as a page of Attention.
// Entry e of a sequence is in the page of the position that completes it, (e + 1) * pool - 1, in
// slot e % (kPagePositions / pool), or 0 if a pool is longer than a page. `pool` divides
// kPagePositions or is a multiple of it.
struct CompressedAttention {
  LayerPages rows;     // of StoreRows
  LayerPages entries;  // float32, of StoreRows; not used if pool is 0
  int pool = 0;        // 0: there are no entries
  Slice query;         // (tokens, heads, head_dim)
  Slice positions;     // as those of Attention, like the next two
  Slice page_lists;
  Slice list_offsets;   // int32 (tokens): of the pages with rows, where a token's list begins
  Slice entry_offsets;  // the same of the pages with entries
  int pages_reached = 0;
  int tokens = 0;
  int heads = 0;
  int window = 0;  // at least 1
  float scale = 1;
  bool has_sinks = false;
  Slice sinks;   // (heads)
  Slice output;  // (tokens, heads, head_dim)
  // Not 0: a token with more entries than this attends only to those of its mask, in which bit e %
  // 32 of word e / 32 stands for entry e.
  int chosen = 0;
  Slice mask;  // ChoosePositions' output, for entries instead of positions
  int mask_words = 0;

  bool operator==(const CompressedAttention&) const = default;
};

}  // namespace lockstep
