// The compute kernels of one instruction set, as a table of functions. Everything is written once
// over sixteen virtual lanes (kernels/generic/*.inl), so every table gives the same bits for the
// same input: "One answer" in ARCHITECTURE.md. Used by device/. A kernel works on a part of an
// operation; splitting it over threads is the device's business. No kernel allocates, locks or
// fails.
//
// Only <cstddef> and <cstdint> may be included here: the files that are compiled for one
// instruction set see this header, and an inline function of a library in them could be linked into
// the baseline program.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lockstep {

// Rows of a packed matrix, keys of a cached head and partial sums of a norm come in sixteens.
inline constexpr int kLanes = 16;
// Positions in one page of keys and values; attention works on one page at a time, at fixed
// positions.
inline constexpr int kPagePositions = 64;
// Deepest stack of unfinished sums while adding 64 leaves in a binary tree.
inline constexpr int kTreeDepth = 7;

// One leaf of the columns of a matrix: a sum over `columns` columns in ascending order, started
// from zero. After it, the two topmost sums are added `merges` times; `ends_subtree` then writes
// the sum out as the next subtree of the output. A matrix whose columns are not cut is one step
// with all columns.
struct LeafStep {
  int32_t columns;
  int32_t merges;
  int32_t ends_subtree;
};

// A further matrix whose products go into the same sums: in each leaf, its columns follow those of
// the matrices before it in the chain. This is how the experts of a token are added, in ascending
// order inside each leaf.
struct MatmulPart {
  const void* weights;  // packed, with the rows of the first matrix
  int32_t columns;
  const LeafStep* steps;  // as many as the first matrix has; only `columns` counts
  const float* input;     // (tokens, columns)
  size_t input_stride;
};
inline constexpr int kMatmulPartsMax = 40;

// output[subtree][token][row] = sum over columns of weight[row][column] * input[token][column].
// Each output is one chain of fused multiply-adds for each leaf, columns ascending.
struct MatmulArgs {
  const void* weights;  // packed: (tile, column, kLanes rows), rows padded with zeros
  int32_t rows;         // without padding; nothing is written beyond
  int32_t columns;
  int32_t tile_begin;  // this call computes tiles [tile_begin, tile_end)
  int32_t tile_end;
  const LeafStep* steps;
  int32_t step_count;
  const float* input;  // (tokens, columns)
  size_t input_stride;
  int32_t tokens;
  float* output;
  size_t token_stride;
  size_t subtree_stride;
  const MatmulPart* more;
  int32_t more_count;  // at most kMatmulPartsMax
};

// output[token][column] = weights[rows[token]][column], for the packed layout of MatmulArgs.
struct EmbedArgs {
  const void* weights;
  int32_t columns;
  const int32_t*
      rows;  // (tokens); a negative row is another rank's and leaves the output untouched
  int32_t token_begin;
  int32_t token_end;
  float* output;
  size_t output_stride;
};

// y = x / sqrt(mean(x * x) + epsilon) * weight. x may be y.
struct RmsNormArgs {
  const float* x;  // (tokens, columns)
  size_t x_stride;
  const float* weight;  // (columns)
  int32_t columns;
  float epsilon;
  int32_t token_begin;
  int32_t token_end;
  float* y;
  size_t y_stride;
};

// Rotates pairs (i, i + half) of each head in place ("rotate half", Hugging Face layout).
struct RopeArgs {
  float* x;  // (tokens, heads, head_dim)
  size_t x_stride;
  int32_t heads;
  int32_t head_dim;
  int32_t half;        // pairs that are rotated, at most head_dim / 2
  const float* table;  // (tokens, 2, half): cosines, then sines
  int32_t token_begin;
  int32_t token_end;
};

// One layer's keys and values in pages. A page holds for each head
//   keys   (kPagePositions / kLanes, head_dim, kLanes): sixteen positions side by side,
//   values (kPagePositions, head_dim), of which the first value_dim are used.
// `keys` and `values` point at page 0; pages of one layer lie page_stride floats apart, heads of a
// page head_stride() floats.
struct PageArgs {
  float* keys;
  float* values;
  size_t page_stride;
  int32_t head_dim;
  int32_t value_dim;  // at most head_dim
  int32_t kv_heads;
};
inline size_t page_head_stride(int32_t head_dim) {
  return size_t{kPagePositions} * head_dim;
}

// Writes the keys and values of tokens into their pages.
struct StoreKvArgs {
  PageArgs pages;
  const float* keys;    // (tokens, kv_heads, head_dim)
  const float* values;  // (tokens, kv_heads, value_dim)
  size_t keys_stride;
  size_t values_stride;
  const int32_t* page;  // (tokens): the page of each token's position
  const int32_t* slot;  // (tokens): position % kPagePositions
  int32_t token_begin;
  int32_t token_end;
};

// Attention of `heads` query heads of one token that share one key/value head, over positions
// [0, position]. Each page gives a maximum, a sum and a weighted value; pages are merged in
// ascending order. Scores are chains of fused multiply-adds over head_dim, one lane for each key.
struct AttentionArgs {
  PageArgs pages;
  int32_t kv_head;
  const int32_t* page_list;  // the sequence's pages, by position / kPagePositions
  int32_t position;
  int32_t window;      // only the last `window` positions are attended to; 0: all
  const float* query;  // (heads, head_dim)
  int32_t heads;
  float scale;
  float* output;  // (heads, value_dim)
};

struct KernelTable {
  const char* name;  // "scalar", "avx2", "avx512", "neon": what LOCKSTEP_ISA understands
  void (*matmul_f32)(const MatmulArgs&);
  void (*matmul_f16)(const MatmulArgs&);
  void (*matmul_bf16)(const MatmulArgs&);
  void (*embed_f32)(const EmbedArgs&);
  void (*embed_f16)(const EmbedArgs&);
  void (*embed_bf16)(const EmbedArgs&);
  void (*rms_norm)(const RmsNormArgs&);
  void (*rope)(const RopeArgs&);
  void (*store_kv)(const StoreKvArgs&);
  void (*attention)(const AttentionArgs&);
  // out[i] = gate[i] * sigmoid(gate[i]) * up[i]; out may be gate or up.
  void (*silu_mul)(const float* gate, const float* up, float* out, size_t count);
  // sum[i] += x[i]
  void (*add)(const float* x, float* sum, size_t count);
};

}  // namespace lockstep
