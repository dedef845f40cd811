// Products whose tokens have different parts. Leaf after leaf, each run adds to the sums of its
// tokens, so that a chain takes its parts in their order and weights are unpacked once for several
// tokens.

// The tiles whose sums are computed together.
constexpr int kRunTiles = tiles_of_block(kTokensMax);

// Sums of all tokens: of the current leaf, or of an unfinished subtree.
template <int Tiles>
using RunSums = F32x16[kMatmulRunTokensMax][Tiles];

template <int Tiles, int Tokens>
LANES_INLINE void gather(const int32_t* tokens, const RunSums<Tiles>& from,
                         F32x16 (&to)[Tiles][Tokens]) {
#pragma GCC unroll 8
  for (int token = 0; token < Tokens; ++token) {
#pragma GCC unroll 4
    for (int tile = 0; tile < Tiles; ++tile) to[tile][token] = from[tokens[token]][tile];
  }
}
template <int Tiles, int Tokens>
LANES_INLINE void scatter(const int32_t* tokens, const F32x16 (&from)[Tiles][Tokens],
                          RunSums<Tiles>& to) {
#pragma GCC unroll 8
  for (int token = 0; token < Tokens; ++token) {
#pragma GCC unroll 4
    for (int tile = 0; tile < Tiles; ++tile) to[tokens[token]][tile] = from[tile][token];
  }
}

// Adds a leaf of a run to the sums of Tokens of its tokens. The first: in a common format.
template <PackedCodes kCodes, PackedScales kScales, int Tiles, int Tokens>
void add_common_run(PartCursor& cursor, const LeafStep& step, const int32_t* tokens,
                    RunSums<Tiles>& sums) {
  using Block = BlockOf<kCodes>;
  constexpr int kAtOnce = tiles_at_once<kCodes, Block, Tiles, Tokens>();
  F32x16 sum[Tiles][Tokens];
  gather<Tiles, Tokens>(tokens, sums, sum);
  cursor.place = add_blocks<kCodes, KnownScales<kScales>, Block, has_halves(kScales), kAtOnce>(
      cursor, cursor.place, step, 0, sum);
  scatter<Tiles, Tokens>(tokens, sum, sums);
}
template <int Tiles, int Tokens>
void add_any_run(PartCursor& cursor, const LeafStep& step, const int32_t* tokens,
                 RunSums<Tiles>& sums) {
  F32x16 sum[Tiles][Tokens];
  gather<Tiles, Tokens>(tokens, sums, sum);
  cursor.tokens = Tokens;
  add_leaf_of<Tiles, Tokens> (*cursor.part->matrix)(cursor, step, Tiles, &sum[0][0]);
  scatter<Tiles, Tokens>(tokens, sum, sums);
}

template <int Tiles>
using AddRun = void (*)(PartCursor& cursor, const LeafStep& step, const int32_t* tokens,
                        RunSums<Tiles>& sums);

template <int Tiles, int Tokens>
AddRun<Tiles> add_run_of(const PackedMatrix& matrix) {
  if constexpr (Tiles * Tokens == kCommonSums) {
    switch (has_usual_input(matrix) ? format_key(matrix.codes, matrix.scales) : -1) {
#define LANES_FORMAT(codes, scales)                          \
  case format_key(PackedCodes::codes, PackedScales::scales): \
    return add_common_run<PackedCodes::codes, PackedScales::scales, Tiles, Tokens>
      LANES_FORMATS_OF_MANY;
#undef LANES_FORMAT
      default:
        break;
    }
  }
  return add_any_run<Tiles, Tokens>;
}

// Calls the kernel for `count` tokens.
template <int Tiles, int Tokens = 1>
LANES_INLINE void add_run_tokens(PartCursor& cursor, const LeafStep& step, const int32_t* tokens,
                                 int count, RunSums<Tiles>& sums) {
  if constexpr (Tokens <= tokens_max(Tiles)) {
    if (count == Tokens) {
      add_run_of<Tiles, Tokens> (*cursor.part->matrix)(cursor, step, tokens, sums);
    } else {
      add_run_tokens<Tiles, Tokens + 1>(cursor, step, tokens, count, sums);
    }
  }
}

// The position of a run before a leaf.
struct RunPlace {
  BlockPlace blocks;
  int32_t column;
};

template <int Tiles>
LANES_INLINE void add_run(const MatmulRun& run, const LeafStep& step, int tile, RunPlace& place,
                          RunSums<Tiles>& sums) {
  PartCursor cursor = {};
  for (int token = 0; token < run.token_count;) {
    cursor = cursor_of(run.part, tile, token);
    cursor.fetches_own = token == 0;
    cursor.place = place.blocks;
    cursor.column = place.column;
    const int end = end_of_block(token, run.token_count, tokens_max(Tiles));
    add_run_tokens<Tiles>(cursor, step, run.tokens + token, end - token, sums);
    token = end;
  }
  place = {cursor.place, cursor.column};
}

// Takes some 280 KiB of stack with the largest Tiles.
template <int Tiles>
void matmul_runs_tiles(const MatmulRunsArgs& args, int tile) {
  const PackedMatrix& matrix = *args.runs[0].part.matrix;
  const int rows = matrix.rows - tile * kLanes;
  float* output = args.output + static_cast<size_t>(tile) * kLanes;
  RunPlace places[kMatmulRunsMax];
  for (int run = 0; run < args.run_count; ++run) places[run] = {};
  RunSums<Tiles> sums;
  RunSums<Tiles> stack[kTreeDepth];
  int depth = 0;
  for (int step = 0; step < matrix.step_count; ++step) {
    const LeafStep leaf = matrix.steps[step];
    for (int token = 0; token < args.tokens; ++token) {
      for (int i = 0; i < Tiles; ++i) sums[token][i] = F32x16::broadcast(0.0f);
    }
    for (int run = 0; run < args.run_count; ++run) {
      const LeafStep& own = args.runs[run].part.matrix->steps[step];
      add_run<Tiles>(args.runs[run], own, tile, places[run], sums);
    }
    for (int token = 0; token < args.tokens; ++token) {
      float* const to = output + static_cast<size_t>(token) * args.token_stride;
      for (int i = 0; i < Tiles; ++i) {
        F32x16 sum = sums[token][i];
        for (int merge = 1; merge <= leaf.merges; ++merge) {
          sum = add(stack[depth - merge][token][i], sum);
        }
        if (leaf.ends_subtree) {
          store_rows(to + i * kLanes, sum, rows - i * kLanes);
        } else {
          stack[depth - leaf.merges][token][i] = sum;
        }
      }
    }
    depth -= leaf.merges;
    if (leaf.ends_subtree) {
      output += args.subtree_stride;
    } else {
      ++depth;
    }
  }
}

void matmul_runs(const MatmulRunsArgs& args) {
  const int rows = args.runs[0].part.matrix->rows;
  for (int tile = args.tile_begin; tile < args.tile_end;) {
    if (tiles_left(rows, tile, args.tile_end) >= kRunTiles) {
      matmul_runs_tiles<kRunTiles>(args, tile);
      tile += kRunTiles;
    } else {
      matmul_runs_tiles<1>(args, tile);
      tile += 1;
    }
  }
}
