// Matrix times tokens: the leaves of the columns, added in a tree. Each register block is Tiles x
// Tokens sums; columns.inl and blocks.inl add the columns of one leaf to them.

// The largest block: kSumsMax sums (of sixteen lanes), at most kTokensMax tokens wide; both are set
// by the instruction set's file.
constexpr int tiles_of_block(int tokens) {
  return 4 * tokens <= kSumsMax ? 4 : 2 * tokens <= kSumsMax ? 2 : 1;
}

// Tiles one by one are mostly the rest of a matrix, for which narrow blocks are enough where wider
// ones have more tiles. Each shape costs compile time.
constexpr int kSingleTokensMax =
    tiles_of_block(kTokensMax) == 1 ? kTokensMax : (kTokensMax + 1) / 2;

constexpr int tokens_max(int tiles) {
  return tiles == 1 ? kSingleTokensMax : kTokensMax;
}

// Whether there is a kernel for a block: the most tiles for its tokens, or the second half of a
// rest that is wider than a block (end_of_block), or one tile.
constexpr bool has_shape(int tiles, int tokens) {
  if (tiles == 1) return tokens <= kSingleTokensMax;
  return tiles == tiles_of_block(tokens) ||
         (tiles == tiles_of_block(kTokensMax) && 2 * tokens == kTokensMax);
}

// Stores a tile of which the matrix has `rows` rows or more.
LANES_INLINE void store_rows(float* to, F32x16 sum, int rows) {
  if (rows >= kLanes) {
    store(to, sum);
  } else {
    store_partial(to, sum, rows);
  }
}

template <int Tiles, int Tokens>
LANES_INLINE void store_block(const MatmulArgs& args, int first_tile, float* output,
                              F32x16 (&sum)[Tiles][Tokens]) {
  const int all_rows = args.parts[0].matrix->rows;
#pragma GCC unroll 4
  for (int tile = 0; tile < Tiles; ++tile) {
    const int row = (first_tile + tile) * kLanes;
    const int rows = all_rows - row;
#pragma GCC unroll 8
    for (int token = 0; token < Tokens; ++token) {
      store_rows(output + static_cast<size_t>(token) * args.token_stride + row, sum[tile][token],
                 rows);
    }
  }
}

template <class Column, int Tiles, int Tokens>
LANES_INLINE void add_by_column(PartCursor& cursor, const LeafStep& step,
                                F32x16 (&sum)[Tiles][Tokens]) {
  const WeightStream stream = {cursor.tiles, cursor.part->matrix->tile_bytes};
  const int end = cursor.column + step.columns;
  add_runs<Column>(stream, reinterpret_cast<const float*>(cursor.input),
                   cursor.part->input_stride / sizeof(float), cursor.column, end, sum);
  cursor.column = end;
}

// PartCursor::add_leaf for matrices by column.
template <class Column, int Tiles, int Tokens>
void add_columns_leaf(PartCursor& cursor, const LeafStep& step, int, F32x16* sums) {
  F32x16 sum[Tiles][Tokens];
  for (int i = 0; i < Tiles * Tokens; ++i) sum[i / Tokens][i % Tokens] = sums[i];
  add_by_column<Column>(cursor, step, sum);
  for (int i = 0; i < Tiles * Tokens; ++i) sums[i] = sum[i / Tokens][i % Tokens];
}

using AddLeaf = decltype(PartCursor::add_leaf);

// The codes that occur with halves: ggml's Q2_K, Q3_K and Q6_K, and NVFP4.
constexpr bool may_have_halves(PackedCodes codes) {
  return codes == PackedCodes::kBits2 || codes == PackedCodes::kBits3 ||
         codes == PackedCodes::kBits6 || codes == PackedCodes::kTable4;
}

// Codes and input that only --exact multiplies.
template <PackedCodes kCodes, class Block>
constexpr bool is_exact_only() {
  return kCodes != PackedCodes::kFp8 && sizeof(Block) == sizeof(InputBlockF);
}

// How many of Tiles tiles go through a block together: with one token the sums of several tiles are
// independent of each other, and all tiles of a block share the converted input.
template <PackedCodes kCodes, class Block, int Tiles, int Tokens>
constexpr int tiles_at_once() {
  constexpr int kMost = Tokens > 1 ? kBlockTilesOfMany : kBlockTilesOfOne;
  return Tiles < kMost ? Tiles : kMost;
}

// How many of Tiles tiles go through a leaf together: with one token all of them, so that the
// group's memory is read from its beginning to its end.
template <PackedCodes kCodes, class Block, int Tiles, int Tokens>
constexpr int tiles_of_leaf() {
  return Tokens == 1 ? Tiles : tiles_at_once<kCodes, Block, Tiles, Tokens>();
}

// With --exact: tile by tile, a few tokens at a time. Each shape of a block costs compile time, so
// all but the one for decoding share these.
template <PackedCodes kCodes, bool kHalves>
void add_exact_leaf(PartCursor& cursor, const LeafStep& step, int tiles, F32x16* sums) {
  const PartCursor begin = cursor;
  for (int tile = 0; tile < tiles; ++tile) {
    int token = 0;
    const auto add_tokens = [&]<int Tokens>(Constant<Tokens>) LANES_LAMBDA {
      for (; token + Tokens <= begin.tokens; token += Tokens, sums += Tokens) {
        cursor.input = begin.input + static_cast<size_t>(token) * begin.part->input_stride;
        cursor.place = add_blocks<kCodes, AnyScales, InputBlockF, kHalves, 1>(
            cursor, begin.place, step, tile, *reinterpret_cast<F32x16(*)[1][Tokens]>(sums));
      }
    };
    add_tokens(Constant<kTokensMax>{});
    if constexpr (kTokensMax > 4) add_tokens(Constant<4>{});
    if constexpr (kTokensMax > 2) add_tokens(Constant<2>{});
    if constexpr (kTokensMax > 1) add_tokens(Constant<1>{});
  }
  cursor.input = begin.input;
}

template <PackedCodes kCodes, class Block, bool kHalves, int Tiles, int Tokens>
constexpr AddLeaf add_leaf_of_halves() {
  if constexpr (is_exact_only<kCodes, Block>() &&
                !(Tokens == 1 && Tiles == tiles_of_block(1) && kBlockTilesOfOne > 1)) {
    return add_exact_leaf<kCodes, kHalves>;
  } else {
    return add_blocks_leaf<kCodes, AnyScales, Block, kHalves,
                           tiles_at_once<kCodes, Block, Tiles, Tokens>(),
                           tiles_of_leaf<kCodes, Block, Tiles, Tokens>(), Tokens>;
  }
}

template <PackedCodes kCodes, class Block, int Tiles, int Tokens>
AddLeaf add_leaf_of_input(const PackedMatrix& matrix) {
  if (!has_halves(matrix.scales)) return add_leaf_of_halves<kCodes, Block, false, Tiles, Tokens>();
  if constexpr (may_have_halves(kCodes)) {
    return add_leaf_of_halves<kCodes, Block, true, Tiles, Tokens>();
  }
  __builtin_trap();  // packing never makes it
}

template <PackedCodes kCodes, int Tiles, int Tokens>
AddLeaf add_leaf_of_blocks(const PackedMatrix& matrix) {
  if constexpr (kCodes != PackedCodes::kFp8) {
    if (matrix.has_integer_input) {
      return add_leaf_of_input<kCodes, InputBlock8, Tiles, Tokens>(matrix);
    }
  }
  return add_leaf_of_input<kCodes, InputBlockF, Tiles, Tokens>(matrix);
}

template <int Tiles, int Tokens>
AddLeaf add_leaf_of(const PackedMatrix& matrix) {
  switch (matrix.codes) {
    case PackedCodes::kF32:
      return add_columns_leaf<PlainColumn<float>, Tiles, Tokens>;
    case PackedCodes::kF16:
      return add_columns_leaf<PlainColumn<F16>, Tiles, Tokens>;
    case PackedCodes::kBF16:
      return add_columns_leaf<PlainColumn<BF16>, Tiles, Tokens>;
    case PackedCodes::kBits2:
      return add_leaf_of_blocks<PackedCodes::kBits2, Tiles, Tokens>(matrix);
    case PackedCodes::kBits3:
      return add_leaf_of_blocks<PackedCodes::kBits3, Tiles, Tokens>(matrix);
    case PackedCodes::kBits4:
      return add_leaf_of_blocks<PackedCodes::kBits4, Tiles, Tokens>(matrix);
    case PackedCodes::kBits5:
      return add_leaf_of_blocks<PackedCodes::kBits5, Tiles, Tokens>(matrix);
    case PackedCodes::kBits6:
      return add_leaf_of_blocks<PackedCodes::kBits6, Tiles, Tokens>(matrix);
    case PackedCodes::kBits8:
      return add_leaf_of_blocks<PackedCodes::kBits8, Tiles, Tokens>(matrix);
    case PackedCodes::kTable4:
      return add_leaf_of_blocks<PackedCodes::kTable4, Tiles, Tokens>(matrix);
    case PackedCodes::kFp8:
      return add_leaf_of_blocks<PackedCodes::kFp8, Tiles, Tokens>(matrix);
    case PackedCodes::kColumnBits4:
      return add_columns_leaf<CodedColumn<PackedCodes::kColumnBits4>, Tiles, Tokens>;
    case PackedCodes::kColumnBits8:
      return add_columns_leaf<CodedColumn<PackedCodes::kColumnBits8>, Tiles, Tokens>;
    case PackedCodes::kColumnFp8:
      return add_columns_leaf<CodedColumn<PackedCodes::kColumnFp8>, Tiles, Tokens>;
  }
  return nullptr;
}

// One token and any parts, with formats known at run time. Part after part goes through all leaves,
// whose sums wait in memory: each leaf's chain takes the parts in their order, and weights are read
// in long runs, while leaf after leaf would read a block of each part in turn.
template <int Tiles>
struct PartByPart {
  F32x16 sums[kLeafStepsMax][Tiles];

  LANES_INLINE PartByPart(const MatmulArgs& args, int tile, TokenBlock tokens) {
    const int steps = args.parts[0].matrix->step_count;
    for (int step = 0; step < steps; ++step) {
      for (int i = 0; i < Tiles; ++i) sums[step][i] = F32x16::broadcast(0.0f);
    }
    for (int part = 0; part < args.part_count; ++part) {
      const PackedMatrix& matrix = *args.parts[part].matrix;
      PartCursor cursor = cursor_of_one(args, part, tile, tokens.first);
      cursor.tokens = 1;
      const AddLeaf add_leaf = add_leaf_of<Tiles, 1>(matrix);
      for (int step = 0; step < steps; ++step) {
        add_leaf(cursor, matrix.steps[step], Tiles, sums[step]);
      }
    }
  }

  LANES_INLINE void add(int step, F32x16 (&sum)[Tiles][1]) const {
#pragma GCC unroll 4
    for (int i = 0; i < Tiles; ++i) sum[i][0] = sums[step][i];
  }
};

// The same for several tokens, leaf after leaf.
template <int Tiles, int Tokens>
struct AnyParts {
  // Through a group, with integers; float input needs more and has fetched all before the last.
  static constexpr int kSweeps =
      Tiles / tiles_of_leaf<PackedCodes::kBits4, InputBlock8, Tiles, Tokens>();
  PartCursor cursors[kMatmulPartsMax];
  int count;

  LANES_INLINE AnyParts(const MatmulArgs& args, int tile, TokenBlock tokens)
      : count(args.part_count) {
    for (int i = 0; i < count; ++i) {
      const PackedMatrix& matrix = *args.parts[i].matrix;
      cursors[i] = cursor_of(args.parts[i], tile, tokens.first);
      cursors[i].tokens = Tokens;
      share_fetching<Tiles>(cursors[i], args, tile, tokens, kSweeps);
      cursors[i].add_leaf = add_leaf_of<Tiles, Tokens>(matrix);
    }
  }

  LANES_INLINE void add(int step, F32x16 (&sum)[Tiles][Tokens]) {
    for (int i = 0; i < count; ++i) {
      PartCursor& cursor = cursors[i];
      cursor.add_leaf(cursor, cursor.part->matrix->steps[step], Tiles, &sum[0][0]);
    }
  }
};

// One part of plain elements, whose sums stay in registers.
template <class Column, int Tiles, int Tokens>
struct OnePlainPart {
  PartCursor cursor;

  LANES_INLINE OnePlainPart(const MatmulArgs& args, int tile, TokenBlock tokens)
      : cursor(cursor_of(args.parts[0], tile, tokens.first)) {}

  LANES_INLINE void add(int step, F32x16 (&sum)[Tiles][Tokens]) {
    add_by_column<Column>(cursor, cursor.part->matrix->steps[step], sum);
  }
};

// One part of blocks, whose sums stay in registers.
template <PackedCodes kCodes, PackedScales kScales, int Tiles, int Tokens>
struct OneBlocksPart {
  using Block = BlockOf<kCodes>;
  static constexpr int kAtOnce = tiles_at_once<kCodes, Block, Tiles, Tokens>();
  PartCursor cursor;

  LANES_INLINE OneBlocksPart(const MatmulArgs& args, int tile, TokenBlock tokens)
      : cursor(Tokens == 1 ? cursor_of_one(args, 0, tile, tokens.first)
                           : cursor_of(args.parts[0], tile, tokens.first)) {
    if (Tokens > 1) share_fetching<Tiles>(cursor, args, tile, tokens, 1);
  }

  LANES_INLINE void add(int step, F32x16 (&sum)[Tiles][Tokens]) {
    cursor.place = add_blocks<kCodes, KnownScales<kScales>, Block, has_halves(kScales), kAtOnce>(
        cursor, cursor.place, cursor.part->matrix->steps[step], 0, sum);
  }
};

// All leaves of Tiles tiles and Tokens tokens. Unfinished sums wait on a stack; a merge adds the
// sum on the stack, which is the left one, and the newer one.
template <class Parts, int Tiles, int Tokens>
void matmul_block(const MatmulArgs& args, int tile, TokenBlock tokens) {
  const PackedMatrix& matrix = *args.parts[0].matrix;
  Parts parts(args, tile, tokens);
  float* output = args.output + static_cast<size_t>(tokens.first) * args.token_stride;

  F32x16 stack[kTreeDepth][Tiles][Tokens];
  int depth = 0;
  for (int step = 0; step < matrix.step_count; ++step) {
    const LeafStep leaf = matrix.steps[step];
    F32x16 sum[Tiles][Tokens];
    clear(sum);
    parts.add(step, sum);
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

// A pair of codes and scales, with the input form that packing chooses for them.
constexpr int format_key(PackedCodes codes, PackedScales scales) {
  return static_cast<int>(codes) * 256 + static_cast<int>(scales);
}

// Whether activations have the form that the codes have without --exact.
LANES_INLINE bool has_usual_input(const PackedMatrix& matrix) {
  return matrix.has_integer_input != (matrix.codes == PackedCodes::kFp8);
}

// The formats that most models use, which have kernels of their own.
#define LANES_FORMATS_OF_MANY      \
  LANES_FORMAT(kBits4, kF16);      \
  LANES_FORMAT(kBits4, kF16Bias);  \
  LANES_FORMAT(kBits4, kBF16Bias); \
  LANES_FORMAT(kBits4, kSuperMin); \
  LANES_FORMAT(kTable4, kE8M0);    \
  LANES_FORMAT(kBits8, kF16);      \
  LANES_FORMAT(kBits8, kF16Bias);  \
  LANES_FORMAT(kBits8, kBF16Bias); \
  LANES_FORMAT(kFp8, kF32)
// Those that gain from it with one token only.
#define LANES_FORMATS_OF_ONE          \
  LANES_FORMAT(kBits5, kSuperMin);    \
  LANES_FORMAT(kBits6, kSuperHalves); \
  LANES_FORMAT(kBits3, kSuperHalves); \
  LANES_FORMAT(kBits2, kSuperMinHalves)

// One part of blocks in such a format; false: in another one.
template <int Tiles, int Tokens>
LANES_INLINE bool matmul_common(const MatmulArgs& args, int tile, TokenBlock tokens) {
  const PackedMatrix& matrix = *args.parts[0].matrix;
  if (!has_usual_input(matrix)) return false;
#define LANES_FORMAT(codes, scales)                                                             \
  case format_key(PackedCodes::codes, PackedScales::scales):                                    \
    matmul_block<OneBlocksPart<PackedCodes::codes, PackedScales::scales, Tiles, Tokens>, Tiles, \
                 Tokens>(args, tile, tokens);                                                   \
    return true
  switch (format_key(matrix.codes, matrix.scales)) {
    LANES_FORMATS_OF_MANY;
    default:
      break;
  }
  if constexpr (Tokens == 1) {
    switch (format_key(matrix.codes, matrix.scales)) {
      LANES_FORMATS_OF_ONE;
      default:
        break;
    }
  }
#undef LANES_FORMAT
  return false;
}

template <int Tiles, int Tokens>
LANES_INLINE void matmul_parts(const MatmulArgs& args, int tile, TokenBlock tokens) {
  if (args.part_count == 1) {
    switch (args.parts[0].matrix->codes) {
      case PackedCodes::kF32:
        return matmul_block<OnePlainPart<PlainColumn<float>, Tiles, Tokens>, Tiles, Tokens>(
            args, tile, tokens);
      case PackedCodes::kF16:
        return matmul_block<OnePlainPart<PlainColumn<F16>, Tiles, Tokens>, Tiles, Tokens>(
            args, tile, tokens);
      case PackedCodes::kBF16:
        return matmul_block<OnePlainPart<PlainColumn<BF16>, Tiles, Tokens>, Tiles, Tokens>(
            args, tile, tokens);
      default:
        break;
    }
  }
  constexpr bool kDecodes = Tokens == 1 && Tiles == tiles_of_block(1) && kSumsMax > 1;
  if constexpr (kDecodes || Tiles * Tokens == kCommonSums) {
    if (args.part_count == 1 && matmul_common<Tiles, Tokens>(args, tile, tokens)) return;
  }
  if constexpr (Tokens == 1) {
    matmul_block<PartByPart<Tiles>, Tiles, 1>(args, tile, tokens);
  } else {
    matmul_block<AnyParts<Tiles, Tokens>, Tiles, Tokens>(args, tile, tokens);
  }
}

// Calls the kernel for `count` tokens.
template <int Tiles, int Tokens = 1>
LANES_INLINE void matmul_tokens(const MatmulArgs& args, int tile, TokenBlock tokens, int count) {
  if constexpr (Tokens <= tokens_max(Tiles)) {
    if constexpr (has_shape(Tiles, Tokens)) {
      if (count == Tokens) return matmul_parts<Tiles, Tokens>(args, tile, tokens);
    }
    matmul_tokens<Tiles, Tokens + 1>(args, tile, tokens, count);
  }
}

// The end of the block of at most `most` tokens that begins with `token`. Blocks are full, but two
// of about the same size replace a full one and a small rest: 9 tokens are 5 + 4, not 8 + 1.
constexpr int end_of_block(int token, int tokens, int most) {
  const int left = tokens - token;
  if (left <= most) return tokens;
  return token + (left < most + most / 2 ? (left + 1) / 2 : most);
}

template <int Tiles>
LANES_INLINE void matmul_tiles(const MatmulArgs& args, int tile) {
  constexpr int kMost = tokens_max(Tiles);
  const int block_count = (args.tokens + kMost - 1) / kMost;
  int token = 0;
  for (int block = 0; block < block_count; ++block) {
    const int end = end_of_block(token, args.tokens, kMost);
    matmul_tokens<Tiles>(args, tile, {token, block, block_count}, end - token);
    token = end;
  }
}

// From `tile` to the end of its group, or to `end` if that is before.
LANES_INLINE int tiles_left(int rows, int tile, int end) {
  const TileGroup group = group_of(rows, tile);
  const int group_end = group.first + group.tiles;
  return (group_end < end ? group_end : end) - tile;
}

// Multiplies Tiles tiles at a time from `tile` on, and returns the first that is left.
template <int Tiles>
LANES_INLINE int matmul_whole(const MatmulArgs& args, int tile, int end) {
  for (; tile + Tiles <= end; tile += Tiles) matmul_tiles<Tiles>(args, tile);
  return tile;
}

void matmul(const MatmulArgs& args) {
  if (args.tokens <= 0) return;
  const int most = tiles_of_block(end_of_block(0, args.tokens, kTokensMax));
  for (int tile = args.tile_begin; tile < args.tile_end;) {
    const int end = tile + tiles_left(args.parts[0].matrix->rows, tile, args.tile_end);
    if (most == 4) tile = matmul_whole<4>(args, tile, end);
    if (most == 2) tile = matmul_whole<2>(args, tile, end);
    tile = matmul_whole<1>(args, tile, end);
  }
}
