// The compute kernels of one instruction set, as a table of functions. Everything is written once
// over sixteen virtual lanes (kernels/generic/*.inl), so every table gives the same bits for the
// same input: docs/internals/one-answer.md. Used by device/, which splits operations over
// threads: a kernel call computes a part of one. No kernel allocates, locks or fails.
//
// Only <cstddef> and <cstdint> may be included here: files compiled for one instruction set include
// this header, and a library's inline function in them could be linked into the baseline program.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/packed_matrix.h"

namespace lockstep {

// Positions in one page of keys and values; attention works on one page at a time, at fixed
// positions.
inline constexpr int kPagePositions = 64;

// Activations as the blocks of a quantised matrix, token by token.
// Integers (like the int8 of Q8_0, per block): scale = m / 127, code = round_to_even(x * (127 / m))
// with m = max |x| of the block. Codes and scale are 0 if m < kBlockLeast. A NaN or an infinity in
// a block makes its codes 0 and its scale NaN or infinite.
struct PrepareArgs {
  const float* input;  // (tokens, columns)
  size_t input_stride;
  const BlockColumns* blocks;
  int32_t block_count;
  int32_t token_begin;
  int32_t token_end;
  void* output;  // (tokens, block_count) of InputBlock8 or InputBlockF
};

// One matrix of a product. Products of further matrices are added to the same sums: in each leaf,
// their blocks or runs follow those of earlier matrices. This adds the experts of a token, in
// ascending order inside each leaf. All have the same number of rows and leaves as the first; their
// formats may differ.
struct MatmulPart {
  const PackedMatrix* matrix;
  // (tokens, columns) of float for plain elements, else (tokens, block_count) of InputBlock8 or
  // InputBlockF.
  const void* input;
  size_t input_stride;  // bytes from one token to the next
};
inline constexpr int kMatmulPartsMax = 40;

// output[subtree][token][row] = sum over columns of weight[row][column] * input[token][column].
// docs/internals/arithmetic.md has the equations; in short, each leaf is a sum over
//   runs of kPlainRunColumns columns for plain elements, each a chain of fused multiply-adds,
//   blocks (or halves of them) for the others, each a dot product with its scales.
struct MatmulArgs {
  const MatmulPart* parts;
  int32_t part_count;  // 1 .. kMatmulPartsMax
  int32_t tile_begin;  // this call computes tiles [tile_begin, tile_end)
  int32_t tile_end;
  int32_t tokens;
  float* output;  // rows of the first matrix; nothing is written beyond them
  size_t token_stride;
  size_t subtree_stride;
  // With one token and blocks: the first of the tiles that this thread reads next, to fetch them in
  // time; nullptr: those that follow in the matrix.
  const std::byte* next = nullptr;
};

// A part that some tokens have.
struct MatmulRun {
  MatmulPart part;        // row i of its input is that of token tokens[i]
  const int32_t* tokens;  // each at most once
  int32_t token_count;
};
inline constexpr int kMatmulRunsMax = 1024;
inline constexpr int kMatmulRunTokensMax = 256;

// A product whose tokens have different parts: those of a token are the runs that have it, in their
// order. The bits are those of MatmulArgs with the parts of each token; here a run's weights are
// used for all of its tokens together.
struct MatmulRunsArgs {
  const MatmulRun* runs;
  int32_t run_count;  // 1 .. kMatmulRunsMax
  int32_t tile_begin;
  int32_t tile_end;
  int32_t tokens;  // at most kMatmulRunTokensMax
  float* output;
  size_t token_stride;
  size_t subtree_stride;
};

// output[token][column] = weight[rows[token]][column]: the stored value, rounded once if scale *
// code + bias is not a float.
struct EmbedArgs {
  const PackedMatrix* matrix;
  const BlockColumns* blocks;  // for a quantised matrix
  const int32_t* rows;  // (tokens); negative rows are another rank's and leave the output untouched
  int32_t token_begin;
  int32_t token_end;
  float* output;
  size_t output_stride;
};

// y = x / sqrt(mean(x * x) + epsilon) * weight, squares added in kNormLanes lanes. x may be y.
// Token t has row t % weights of the weight.
struct RmsNormArgs {
  const float* x;  // (tokens, columns)
  size_t x_stride;
  const float* weight;  // (weights, columns)
  int32_t columns;
  float epsilon;
  int32_t token_begin;
  int32_t token_end;
  float* y;
  size_t y_stride;
  int32_t weights = 1;
};

// Rotates pairs (i, i + half) of each head in place ("rotate half", Hugging Face layout).
struct RopeArgs {
  float* x;  // (tokens, heads, head_dim)
  size_t x_stride;
  int32_t heads;
  int32_t head_dim;
  int32_t half;        // number of rotated pairs, at most head_dim / 2
  const float* table;  // (tokens, 2, half): cosines, then sines
  int32_t token_begin;
  int32_t token_end;
};

// How keys and values are stored. Attention reads the stored values as float32 and computes with
// those, whatever the kind.
//   kF32         as they are.
//   kBF16, kF16  rounded to the nearest, ties to even. A finite value stays finite: beyond the
//                largest it becomes the largest. Infinities and NaNs stay what they are.
//   kQ8          value = code * scale, which is exact. The columns of one head and position are
//                cut into blocks of kBlockColumns; with m = max |x| of a block, scale is m / 127
//                rounded up to BF16 and code = round_to_even(x * (1 / scale)), from -127 to 127.
//                Codes and scale are 0 if m is below kBlockLeast; if m reaches kKvMost or a value
//                is a NaN, all of the block is NaN (codes 0, scale NaN).
enum class KvKind : int32_t { kF32, kBF16, kF16, kQ8 };
inline constexpr float kKvMost = 0x1p+120f;  // no product of a code and its scale is infinite

// These are always inlined: called from a file that is compiled for one instruction set, a copy of
// them could be linked into the baseline program.
[[gnu::always_inline]] inline constexpr int kv_blocks(int32_t head_dim) {
  return (head_dim + kBlockColumns - 1) / kBlockColumns;
}
[[gnu::always_inline]] inline constexpr size_t kv_element_bytes(KvKind kind) {
  return kind == KvKind::kF32 ? 4 : kind == KvKind::kQ8 ? 1 : 2;
}

// One layer's keys and values in pages. For each head a page holds
//   keys   (kPagePositions / kLanes, head_dim, kLanes): sixteen positions side by side,
//   values (kPagePositions, head_dim), of which the first value_dim are used;
// with kQ8 both are codes, and after them follow the scales as BF16,
//   keys   (kPagePositions / kLanes, kv_blocks(head_dim), kLanes),
//   values (kPagePositions, kv_blocks(head_dim)).
// `keys` and `values` point at page 0; pages of one layer are page_stride bytes apart, heads in a
// page page_head_stride() bytes.
struct PageArgs {
  KvKind kind;
  std::byte* keys;
  std::byte* values;
  size_t page_stride;
  int32_t head_dim;
  int32_t value_dim;  // at most head_dim
  int32_t kv_heads;
};
[[gnu::always_inline]] inline constexpr size_t kv_scales_at(int32_t head_dim) {  // with kQ8
  return size_t{kPagePositions} * static_cast<size_t>(head_dim);
}
[[gnu::always_inline]] inline constexpr size_t page_head_stride(KvKind kind, int32_t head_dim) {
  const size_t elements = size_t{kPagePositions} * static_cast<size_t>(head_dim);
  const size_t scales = size_t{kPagePositions} * static_cast<size_t>(kv_blocks(head_dim));
  return elements * kv_element_bytes(kind) + (kind == KvKind::kQ8 ? scales * 2 : 0);
}

// Rounds the keys and values of tokens and writes them into their pages.
struct StoreKvArgs {
  PageArgs pages;
  const float* keys;    // (tokens, kv_heads, head_dim), or null: only values are written
  const float* values;  // (tokens, kv_heads, value_dim)
  size_t keys_stride;
  size_t values_stride;
  const int32_t* page;  // (tokens): the page of each token's position
  const int32_t* slot;  // (tokens): position % kPagePositions
  int32_t token_begin;
  int32_t token_end;
};

// Attention of `heads` query heads of one token that share one key/value head, over positions [0,
// position]. Each page gives a maximum, a sum and a weighted value; pages are merged in ascending
// order. Scores are chains of fused multiply-adds over head_dim, one lane per key. A sink takes
// part in the softmax as an additional score, after all pages, and has no value.
struct AttentionArgs {
  PageArgs pages;
  int32_t kv_head;
  const int32_t* page_list;  // the sequence's pages, by position / kPagePositions
  int32_t position;
  int32_t window;      // attention covers only the last `window` positions; 0: all
  const float* query;  // (heads, head_dim)
  int32_t heads;
  float scale;
  const float* sinks;  // (heads), or null
  float* output;       // (heads, value_dim)
  // A bit for each position, from the lowest of a word on, for attention_chosen alone.
  const uint32_t* chosen = nullptr;
  bool keys_are_rows = false;  // for attention_chosen alone: keys are stored as values are
};
// The longest keys of attention over chosen positions.
inline constexpr int kChosenKeyMax = 1024;

// Attention of one token over entries and a window of positions, as CompressedAttention in
// device/operations.h: one key, which is also the value, serves all heads.
struct CompressedAttentionArgs {
  PageArgs rows;              // of positions; value_dim is head_dim, at most kChosenKeyMax
  PageArgs entries;           // float32, of the same head_dim
  int32_t pool;               // 0: there are no entries
  const int32_t* page_list;   // of pages with rows
  const int32_t* entry_list;  // of pages with entries
  int32_t position;
  int32_t window;      // at least 1
  const float* query;  // (heads, head_dim)
  int32_t heads;
  float scale;
  const float* sinks;      // (heads), or null
  const uint32_t* chosen;  // a bit for each entry, or null: all of them
  float* output;           // (heads, head_dim)
};

// Some columns of an entry, as Compress in device/operations.h: in each column the sum of
// e[m] * value[m] over its members m in ascending order, divided by the sum of
// e[m] = exp(g[m] - the largest g), with g[m] = gate[m] + bias[m]. Products are fused with the
// additions. Without gates, which is without a bias: the sum of value[m], beginning with the first,
// divided by their number.
struct CompressArgs {
  PageArgs inputs;    // rows of one head
  const float* bias;  // (pool, columns), or (pool, 2 * columns); or null
  const int32_t* page_list;
  int32_t last;  // position
  int32_t pool;
  bool overlaps;
  int32_t columns;
  int32_t column_begin;  // a multiple of sixteen
  int32_t column_end;
  float* output;  // (columns)
};

// The key of a pool of positions for the choice: in each column c the sum of e[m] * key[m][c] over
// its positions m in ascending order, divided by the sum of e[m] = exp(g[m] - the largest g), with
// g[m] = gate[m][c] + bias[m][c]. Products are fused with the additions.
struct PoolKeyArgs {
  PageArgs inputs;    // one head: a position's key, then its gate
  PageArgs pools;     // float32, one head: kPagePositions / pool keys of a page
  const float* bias;  // (pool, columns)
  int32_t columns;    // of a key
  int32_t pool;       // positions
  int32_t page;
  int32_t slot;  // the pool's number in the page
};

// The scores of the positions of some pages for a token's choice: the sum over the index's heads of
// weight * max(0, query . key), each product a chain of fused multiply-adds, added in ascending
// order by fused multiply-adds. Scores of slots that hold no key are undefined.
struct IndexScoresArgs {
  PageArgs pages;            // one head of keys, and no values
  const int32_t* page_list;  // the sequence's pages, by position / kPagePositions
  int32_t page_begin;        // of the list
  int32_t page_end;
  const float* query;    // (heads, head_dim)
  const float* weights;  // (heads)
  int32_t heads;
  int32_t page_keys;  // kPagePositions, or as many keys as a page has pools
  float* scores;      // by position or pool
};

// A causal convolution of each channel by itself over `taps` inputs, each `dilation` tokens after
// the one before it, for one token: y[c] = silu(sum over taps of weight * input), a chain of fused
// multiply-adds from the oldest input on. Rows are `stride` floats apart.
struct ConvolveArgs {
  const float* x;        // (channels)
  const float* weights;  // (taps, channels)
  const float* before;   // ((taps - 1) * dilation, channels): the inputs before x, the oldest
                         // first; null: zeros
  float* after;          // the same for the next token; may be `before`
  float* y;              // (channels); may be x
  int32_t taps;
  int32_t channels;
  size_t stride;
  int32_t dilation = 1;
};

// The delta rule (https://arxiv.org/abs/2412.06464) for one token and one head, on a state of
// (key_dim, value_dim), with d[i] the decay of row i:
//   change[j] = (value[j] - sum over i of (state[i][j] * d[i]) * key[i]) * rate
//   state[i][j] = state[i][j] * d[i] + key[i] * change[j]
//   output[j] = sum over i of state[i][j] * query[i]
// Each sum is a chain of fused multiply-adds over ascending i.
struct DeltaArgs {
  const float* before;  // null: zeros
  float* after;         // may be `before`
  const float* query;   // (key_dim)
  const float* key;
  const float* value;  // (value_dim)
  const float* decay;
  int32_t decay_stride;  // 0: one for all rows; 1: one for each
  float rate;
  int32_t key_dim;
  int32_t value_dim;
  float* output;  // (value_dim)
};

// More residual streams of a token are refused.
inline constexpr int kResidualStreamsMax = 8;

struct KernelTable {
  // As in LOCKSTEP_ISA: "scalar", "avx2", "avx512", "neon", "neon_dotprod", "neon_i8mm".
  const char* name;
  void (*matmul)(const MatmulArgs&);
  void (*matmul_runs)(const MatmulRunsArgs&);
  void (*prepare_integers)(const PrepareArgs&);  // InputBlock8
  void (*prepare_floats)(const PrepareArgs&);    // InputBlockF
  void (*embed)(const EmbedArgs&);
  void (*rms_norm)(const RmsNormArgs&);
  void (*rope)(const RopeArgs&);
  void (*store_kv)(const StoreKvArgs&);
  void (*attention)(const AttentionArgs&);
  // The same as attention over all positions, if all are chosen or there is no choice; without a
  // window. The first head_dim columns of values are the keys, or keys are rows of their own, and
  // head_dim is at most kChosenKeyMax.
  void (*attention_chosen)(const AttentionArgs&);
  void (*compressed_attention)(const CompressedAttentionArgs&);
  void (*compress)(const CompressArgs&);
  void (*pool_key)(const PoolKeyArgs&);
  void (*index_scores)(const IndexScoresArgs&);
  // out[i] = gate[i] * sigmoid(gate[i]) * up[i]; out may be gate or up.
  void (*silu_mul)(const float* gate, const float* up, float* out, size_t count);
  // With gate and up clamped to at most `limit` and up to at least -limit,
  // out[i] = (up[i] + 1) * (gate[i] * sigmoid(1.702 * gate[i])); out may be gate or up. The
  // activation of gpt-oss.
  void (*clamped_swiglu)(const float* gate, const float* up, float limit, float* out, size_t count);
  // sum[i] += x[i]
  void (*add)(const float* x, float* sum, size_t count);
  // y[i] = sigmoid(x[i]); y may be x.
  void (*sigmoid)(const float* x, float* y, size_t count);
  // x[i] = x[i] * sigmoid(x[i])
  void (*silu)(float* x, size_t count);
  // x[i] = exp(-rate[i] * log(1 + exp(x[i] + bias[i])))
  void (*decay)(const float* bias, const float* rate, float* x, size_t count);
  // x[i] = exp(least * sigmoid(rate[i] * (x[i] + bias[i])))
  void (*bounded_decay)(const float* bias, const float* rate, float least, float* x, size_t count);
  // CollapseStreams and UpdateStreams in device/operations.h for some columns of a token, whose
  // streams are `stride` floats apart.
  void (*collapse_streams)(const float* streams, size_t stride, const float* weights, int32_t count,
                           size_t columns, float* y);
  void (*update_streams)(const float* x, const float* post, const float* mix, int32_t count,
                         size_t columns, float* streams, size_t stride);
  // streams[j][i] = fma(post[j], x[i], streams[j][i])
  void (*inject_streams)(const float* x, const float* post, int32_t count, size_t columns,
                         float* streams, size_t stride);
  // One stream of MatchStreams: with g = key . query / sqrt(columns), products added as the squares
  // of a norm, r is the root of the larger of |g| and 1e-6, with the sign of g, or 0 if |g| is less
  // than the smallest normal number; output[i] = sigmoid(r) * value[i]. output may be key.
  void (*match_stream)(const float* key, const float* query, const float* value, int32_t columns,
                       float* output);
  void (*convolve)(const ConvolveArgs&);
  void (*delta_rule)(const DeltaArgs&);
};

}  // namespace lockstep
