// Matrix times tokens. A register block is Tiles x Tokens sums; a weight is loaded and converted
// once for all tokens of the block. Whatever the block, each output is the same chain of
// operations.

// The widest block: kSumsMax sums (of sixteen lanes) at most kTokensMax tokens wide, from the file
// of the instruction set.
constexpr int tiles_of_block(int tokens) {
  return 4 * tokens <= kSumsMax ? 4 : 2 * tokens <= kSumsMax ? 2 : 1;
}

// How far ahead of their use weights are fetched into the cache.
constexpr size_t kPrefetchBytes = 2048;

struct WeightStream {
  const char* begin;
  size_t tile_bytes;
};

// Fetches what block column `offset` bytes from the begin of a tile will need kPrefetchBytes later.
// Beyond the end of a tile lie the tiles of this block, so that the fetch goes on in the next
// block.
template <int Tiles>
LANES_INLINE void prefetch_block(WeightStream stream, size_t offset) {
  size_t ahead = offset + kPrefetchBytes;
  if (ahead >= stream.tile_bytes) ahead += (Tiles - 1) * stream.tile_bytes;
  for (int tile = 0; tile < Tiles; ++tile) {
    __builtin_prefetch(stream.begin + static_cast<size_t>(tile) * stream.tile_bytes + ahead);
  }
}

// sum[tile][token] += weight * input over one column.
template <class Weight, int Tiles, int Tokens>
LANES_INLINE void add_column(const Weight* weights, size_t tile_stride, const float* input,
                             size_t input_stride, F32x16 (&sum)[Tiles][Tokens]) {
  F32x16 weight[Tiles];
#pragma GCC unroll 4
  for (int tile = 0; tile < Tiles; ++tile)
    weight[tile] = F32x16::load(weights + static_cast<size_t>(tile) * tile_stride);
#pragma GCC unroll 8
  for (int token = 0; token < Tokens; ++token) {
    const F32x16 x = F32x16::broadcast(input[static_cast<size_t>(token) * input_stride]);
#pragma GCC unroll 4
    for (int tile = 0; tile < Tiles; ++tile) {
      sum[tile][token] = fma(weight[tile], x, sum[tile][token]);
    }
  }
}

template <int Tiles, int Tokens>
LANES_INLINE void clear(F32x16 (&sum)[Tiles][Tokens]) {
#pragma GCC unroll 4
  for (int tile = 0; tile < Tiles; ++tile) {
#pragma GCC unroll 8
    for (int token = 0; token < Tokens; ++token) sum[tile][token] = F32x16::broadcast(0.0f);
  }
}

// Goes on with the chains of `sum` over columns [begin, end).
template <class Weight, int Tiles, int Tokens>
LANES_INLINE void add_columns(WeightStream stream, const float* input, size_t input_stride,
                              int begin, int end, F32x16 (&sum)[Tiles][Tokens]) {
  constexpr size_t kColumnBytes = kLanes * sizeof(Weight);
  constexpr int kColumnsPerLine = 64 / static_cast<int>(kColumnBytes);
  const size_t tile_stride = stream.tile_bytes / sizeof(Weight);
  const Weight* weights = reinterpret_cast<const Weight*>(stream.begin);
  int column = begin;
  for (; column + kColumnsPerLine <= end; column += kColumnsPerLine) {
    prefetch_block<Tiles>(stream, static_cast<size_t>(column) * kColumnBytes);
#pragma GCC unroll 2
    for (int i = 0; i < kColumnsPerLine; ++i) {
      add_column(weights + static_cast<size_t>(column + i) * kLanes, tile_stride,
                 input + column + i, input_stride, sum);
    }
  }
  for (; column < end; ++column) {
    add_column(weights + static_cast<size_t>(column) * kLanes, tile_stride, input + column,
               input_stride, sum);
  }
}

template <int Tiles, int Tokens>
LANES_INLINE void store_block(const MatmulArgs& args, int first_tile, float* output,
                              F32x16 (&sum)[Tiles][Tokens]) {
#pragma GCC unroll 4
  for (int tile = 0; tile < Tiles; ++tile) {
    const int row = (first_tile + tile) * kLanes;
    const int rows = args.rows - row;
#pragma GCC unroll 8
    for (int token = 0; token < Tokens; ++token) {
      float* to = output + static_cast<size_t>(token) * args.token_stride + row;
      if (rows >= kLanes) {
        store(to, sum[tile][token]);
      } else {
        store_partial(to, sum[tile][token], rows);
      }
    }
  }
}

// The columns that one leaf has of the parts behind the first; `begins` moves on.
template <class Weight, int Tiles, int Tokens>
void add_more_parts(const MatmulArgs& args, int tile, int token, int step, int* begins,
                    F32x16 (&sum)[Tiles][Tokens]) {
  for (int i = 0; i < args.more_count; ++i) {
    const MatmulPart& part = args.more[i];
    const size_t tile_bytes = static_cast<size_t>(part.columns) * kLanes * sizeof(Weight);
    const WeightStream stream = {
        static_cast<const char*>(part.weights) + static_cast<size_t>(tile) * tile_bytes,
        tile_bytes};
    const float* input = part.input + static_cast<size_t>(token) * part.input_stride;
    const int end = begins[i] + part.steps[step].columns;
    add_columns<Weight>(stream, input, part.input_stride, begins[i], end, sum);
    begins[i] = end;
  }
}

// All leaves of Tiles tiles and Tokens tokens. Unfinished sums wait on a stack; a merge adds the
// sum on the stack, which is the left one, and the newer one.
template <class Weight, int Tiles, int Tokens>
void matmul_block(const MatmulArgs& args, int tile, int token) {
  const size_t tile_bytes = static_cast<size_t>(args.columns) * kLanes * sizeof(Weight);
  const WeightStream stream = {
      static_cast<const char*>(args.weights) + static_cast<size_t>(tile) * tile_bytes, tile_bytes};
  const float* input = args.input + static_cast<size_t>(token) * args.input_stride;
  float* output = args.output + static_cast<size_t>(token) * args.token_stride;

  F32x16 stack[kTreeDepth][Tiles][Tokens];
  int depth = 0;
  int column = 0;
  int more_columns[kMatmulPartsMax];
  for (int i = 0; i < args.more_count; ++i) more_columns[i] = 0;
  for (int step = 0; step < args.step_count; ++step) {
    const LeafStep leaf = args.steps[step];
    F32x16 sum[Tiles][Tokens];
    clear(sum);
    add_columns<Weight>(stream, input, args.input_stride, column, column + leaf.columns, sum);
    column += leaf.columns;
    if (args.more_count > 0) {
      add_more_parts<Weight>(args, tile, token, step, more_columns, sum);
    }
    for (int merge = 0; merge < leaf.merges; ++merge) {
      --depth;
#pragma GCC unroll 4
      for (int i = 0; i < Tiles; ++i) {
#pragma GCC unroll 8
        for (int k = 0; k < Tokens; ++k) sum[i][k] = add(stack[depth][i][k], sum[i][k]);
      }
    }
    if (leaf.ends_subtree) {
      store_block(args, tile, output, sum);
      output += args.subtree_stride;
    } else {
#pragma GCC unroll 4
      for (int i = 0; i < Tiles; ++i) {
#pragma GCC unroll 8
        for (int k = 0; k < Tokens; ++k) stack[depth][i][k] = sum[i][k];
      }
      ++depth;
    }
  }
}

// Calls the block of `tokens` tokens; blocks that would need more than kSumsMax sums do not exist.
template <class Weight, int Tiles, int Tokens = 1>
LANES_INLINE void matmul_tokens(const MatmulArgs& args, int tile, int token, int tokens) {
  if constexpr (Tokens <= kTokensMax && (Tiles == 1 || Tiles * Tokens <= kSumsMax)) {
    if (tokens == Tokens) {
      matmul_block<Weight, Tiles, Tokens>(args, tile, token);
    } else {
      matmul_tokens<Weight, Tiles, Tokens + 1>(args, tile, token, tokens);
    }
  }
}

template <class Weight, int Tiles>
LANES_INLINE int matmul_tiles(const MatmulArgs& args, int tile, int block_count) {
  for (; tile + Tiles <= args.tile_end; tile += Tiles) {
    int token = 0;
    for (int block = 0; block < block_count;
         ++block) {  // tokens spread evenly: 9 are 5 + 4, not 8 + 1
      const int end = static_cast<int>(int64_t{args.tokens} * (block + 1) / block_count);
      matmul_tokens<Weight, Tiles>(args, tile, token, end - token);
      token = end;
    }
  }
  return tile;
}

template <class Weight>
void matmul(const MatmulArgs& args) {
  if (args.tokens <= 0) return;
  const int block_count = (args.tokens + kTokensMax - 1) / kTokensMax;
  const int tiles = tiles_of_block((args.tokens + block_count - 1) / block_count);
  int tile = args.tile_begin;
  if (tiles >= 4) tile = matmul_tiles<Weight, 4>(args, tile, block_count);
  if (tiles >= 2) tile = matmul_tiles<Weight, 2>(args, tile, block_count);
  matmul_tiles<Weight, 1>(args, tile, block_count);
}
