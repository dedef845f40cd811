// Quantised blocks times tokens: the equations of docs/internals/arithmetic.md, on every
// instruction set and for any division into tiles and tokens. A block is unpacked once for all
// tokens.

template <PackedCodes kCodes>
struct BlockOfCodes {
  using Type = InputBlock8;
};
template <>
struct BlockOfCodes<PackedCodes::kFp8> {
  using Type = InputBlockF;
};
template <PackedCodes kCodes>
using BlockOf = typename BlockOfCodes<kCodes>::Type;

template <int Tokens>
struct InputPointers {
  const std::byte* first;
  size_t stride;

  template <class Block>
  LANES_INLINE const Block& at(int token) const {
    return *reinterpret_cast<const Block*>(first + static_cast<size_t>(token) * stride);
  }
};

LANES_INLINE F32x16 input_sum(const InputBlock8& x, bool is_half, int half) {
  return F32x16::broadcast(static_cast<float>(is_half ? x.half_sums[half] : x.sum));
}
LANES_INLINE F32x16 input_sum(const InputBlockF& x, bool is_half, int half) {
  return F32x16::broadcast(is_half ? x.half_sums[half] : x.sum);
}
LANES_INLINE F32x16 add_term(F32x16 term, const InputBlock8& x, F32x16 chain) {
  return fma(term, F32x16::broadcast(x.scale), chain);
}
LANES_INLINE F32x16 add_term(F32x16 term, const InputBlockF&, F32x16 chain) {
  return add(chain, term);
}

// Continues a chain with the dot product of a block or of half of one.
template <Formula kFormula, bool kHalves, class Block>
LANES_INLINE F32x16 add_dot(const BlockScales& scales, int half, const Block& x, F32x16 dot,
                            F32x16 chain) {
  const F32x16 scale = scales.scale[half];
  if constexpr (kFormula == Formula::kScale) return add_term(mul(scale, dot), x, chain);
  const F32x16 sum = input_sum(x, kHalves, half);
  const F32x16 bias = scales.bias[half];
  if constexpr (kFormula == Formula::kBias) {
    return add_term(fma(bias, sum, mul(scale, dot)), x, chain);
  }
  return add_term(mul(scale, fma(bias, sum, dot)), x, chain);
}

template <Formula kFormula, bool kHalves, class Block, int Tiles, int Tokens>
LANES_INLINE void add_dots(const BlockScales* scales, int half, InputPointers<Tokens> input,
                           const F32x16 (&dot)[Tiles][Tokens], F32x16 (*chain)[Tokens]) {
#pragma GCC unroll 4
  for (int tile = 0; tile < Tiles; ++tile) {
#pragma GCC unroll 8
    for (int token = 0; token < Tokens; ++token) {
      chain[tile][token] =
          add_dot<kFormula, kHalves>(scales[tile], half, input.template at<Block>(token),
                                     dot[tile][token], chain[tile][token]);
    }
  }
}

// A block of one tile; those of the next tiles follow it.
struct CodesOfBlock {
  const std::byte* at;
  int32_t offset;
  ByteTable table;

  template <PackedCodes kCodes>
  LANES_INLINE const std::byte* of_tile(int tile) const {
    return at + static_cast<size_t>(tile) * block_bytes(kCodes);
  }
};

// The sum of the codes in quads [Begin, End), which are all or a half.
template <int Begin, int End>
LANES_INLINE int32_t sum_of_codes(const InputBlock8& x) {
  return End - Begin == kQuads ? x.sum : x.half_sums[Begin == 0 ? 0 : 1];
}

// An instruction set whose Dot has OfTwo multiplies two neighbouring quads by two tokens at once.
template <class DotOfOne>
concept HasDotOfTwo = requires {
  typename DotOfOne::OfTwo;
};

// Tokens in pairs; the last of an odd number is a pair with itself.
template <int Tokens>
struct TokenPairs {
  static constexpr int kCount = (Tokens + 1) / 2;
  InputPointers<Tokens> input;

  LANES_INLINE const InputBlock8& first(int pair) const {
    return input.template at<InputBlock8>(2 * pair);
  }
  LANES_INLINE const InputBlock8& second(int pair) const {
    return input.template at<InputBlock8>(2 * pair + 1 < Tokens ? 2 * pair + 1 : 2 * pair);
  }
};

// Quads [Begin, End) of a block and integers, in pairs of quads and of tokens.
template <PackedCodes kCodes, int Begin, int End, int Tiles, int Tokens>
LANES_INLINE void dot_pairs(const CodesOfBlock& codes, TokenPairs<Tokens> tokens,
                            F32x16 (&dot)[Tiles][Tokens]) {
  using DotOfTwo = typename Dot<quad_bits(kCodes)>::OfTwo;
  constexpr int kPairs = TokenPairs<Tokens>::kCount;
  DotOfTwo sums[Tiles][kPairs];
#pragma GCC unroll 4
  for (int pair = 0; pair < kPairs; ++pair) {
    const DotOfTwo start =
        DotOfTwo::start(sum_of_codes<Begin, End>(tokens.first(pair)),
                        sum_of_codes<Begin, End>(tokens.second(pair)), codes.offset);
#pragma GCC unroll 4
    for (int tile = 0; tile < Tiles; ++tile) sums[tile][pair] = start;
  }
  for_constants<Begin / 2, End / 2>([&](auto k) LANES_LAMBDA {
    constexpr int kQuad = 2 * decltype(k)::value;
    typename DotOfTwo::Input x[kPairs];
#pragma GCC unroll 4
    for (int pair = 0; pair < kPairs; ++pair) {
      x[pair] = DotOfTwo::Input::load(tokens.first(pair).codes + 4 * kQuad,
                                      tokens.second(pair).codes + 4 * kQuad);
    }
#pragma GCC unroll 4
    for (int tile = 0; tile < Tiles; ++tile) {
      const std::byte* const from = codes.template of_tile<kCodes>(tile);
      DotOfTwo::add(sums[tile], load_quad<kCodes, kQuad>(from, codes.table),
                    load_quad<kCodes, kQuad + 1>(from, codes.table), x);
    }
  });
#pragma GCC unroll 4
  for (int tile = 0; tile < Tiles; ++tile) {
#pragma GCC unroll 8
    for (int token = 0; token < Tokens; ++token) {
      dot[tile][token] = sums[tile][token / 2].finish(token % 2);
    }
  }
}

// Quads [Begin, End) of a block and integers.
template <PackedCodes kCodes, int Begin, int End, int Tiles, int Tokens>
LANES_INLINE void dot_quads(const CodesOfBlock& codes, InputPointers<Tokens> input,
                            const InputBlock8*, F32x16 (&dot)[Tiles][Tokens]) {
  if constexpr (Tokens > 1 && HasDotOfTwo<Dot<quad_bits(kCodes)>>) {
    return dot_pairs<kCodes, Begin, End>(codes, TokenPairs<Tokens>{input}, dot);
  }
  Dot<quad_bits(kCodes)> sums[Tiles][Tokens];
#pragma GCC unroll 8
  for (int token = 0; token < Tokens; ++token) {
    const InputBlock8& x = input.template at<InputBlock8>(token);
    const auto start = Dot<quad_bits(kCodes)>::start(sum_of_codes<Begin, End>(x), codes.offset);
#pragma GCC unroll 4
    for (int tile = 0; tile < Tiles; ++tile) sums[tile][token] = start;
  }
  for_constants<Begin, End>([&](auto k) LANES_LAMBDA {
    constexpr int kQuad = decltype(k)::value;
#pragma GCC unroll 4
    for (int tile = 0; tile < Tiles; ++tile) {
      const Quad quad = load_quad<kCodes, kQuad>(codes.template of_tile<kCodes>(tile), codes.table);
#pragma GCC unroll 8
      for (int token = 0; token < Tokens; ++token) {
        sums[tile][token].template add<kQuad>(
            quad, input.template at<InputBlock8>(token).codes + 4 * kQuad);
      }
    }
  });
#pragma GCC unroll 4
  for (int tile = 0; tile < Tiles; ++tile) {
#pragma GCC unroll 8
    for (int token = 0; token < Tokens; ++token) dot[tile][token] = sums[tile][token].finish();
  }
}

template <PackedCodes kCodes, int Column>
LANES_INLINE F32x16 column_weights(Quad quad, int32_t offset) {
  if constexpr (kCodes == PackedCodes::kFp8) return column_fp8<Column>(quad);
  return column_codes<Column>(quad, offset);
}

// Quads [Begin, End) of a block as an array. Eight-bit quads are used in place.
template <PackedCodes kCodes, int Begin, int End, int Tiles>
struct BlockQuads {
  static constexpr bool kIsUnpacked = code_bits(kCodes) < 8;
  const CodesOfBlock& codes;
  Quad quads[kIsUnpacked ? Tiles : 1][kIsUnpacked ? End - Begin : 1];

  LANES_INLINE explicit BlockQuads(const CodesOfBlock& from) : codes(from) {
    if constexpr (kIsUnpacked) {
      for_constants<Begin, End>([&](auto k) LANES_LAMBDA {
#pragma GCC unroll 4
        for (int tile = 0; tile < Tiles; ++tile) {
          quads[tile][decltype(k)::value - Begin] = load_quad<kCodes, decltype(k)::value>(
              codes.template of_tile<kCodes>(tile), codes.table);
        }
      });
    }
  }
  LANES_INLINE Quad at(int tile, int k) const {
    if constexpr (kIsUnpacked) return quads[tile][k - Begin];
    return Quad::load(codes.template of_tile<kCodes>(tile) + 64 * k);
  }
};

// Quads [Begin, End) of a block and floats.
template <PackedCodes kCodes, int Begin, int End, int Tiles, int Tokens>
LANES_INLINE void dot_quads(const CodesOfBlock& codes, InputPointers<Tokens> input,
                            const InputBlockF*, F32x16 (&dot)[Tiles][Tokens]) {
  clear(dot);
  const BlockQuads<kCodes, Begin, End, Tiles> quads(codes);
#pragma GCC unroll 1
  for (int k = Begin; k < End; ++k) {
    Quad quad[Tiles];
#pragma GCC unroll 4
    for (int tile = 0; tile < Tiles; ++tile) quad[tile] = quads.at(tile, k);
    for_constants<0, 4>([&](auto column) LANES_LAMBDA {
      constexpr int kColumn = decltype(column)::value;
#pragma GCC unroll 4
      for (int tile = 0; tile < Tiles; ++tile) {
        const F32x16 weight = column_weights<kCodes, kColumn>(quad[tile], codes.offset);
#pragma GCC unroll 8
        for (int token = 0; token < Tokens; ++token) {
          const float x = input.template at<InputBlockF>(token).values[4 * k + kColumn];
          dot[tile][token] = fma(weight, F32x16::broadcast(x), dot[tile][token]);
        }
      }
    });
  }
  if constexpr (kCodes == PackedCodes::kFp8) {
#pragma GCC unroll 4
    for (int tile = 0; tile < Tiles; ++tile) {
#pragma GCC unroll 8
      for (int token = 0; token < Tokens; ++token) {
        dot[tile][token] = mul(dot[tile][token], F32x16::broadcast(256.0f));
      }
    }
  }
}

// Continues the chains with a block, or with half 0 or 1 of one; AtOnce tiles share the work on the
// input.
template <PackedCodes kCodes, class Block, bool kHalves, int kHalf, int AtOnce, int Tiles,
          int Tokens>
LANES_INLINE void add_block(const CodesOfBlock& codes, Formula formula,
                            const BlockScales (&scales)[Tiles], InputPointers<Tokens> input,
                            F32x16 (&chain)[Tiles][Tokens]) {
  constexpr int kCount = kHalves ? kQuads / 2 : kQuads;
  const Block* block = nullptr;  // chooses the overload
  for_constants<0, Tiles / AtOnce>([&](auto i) LANES_LAMBDA {
    constexpr int kFirst = decltype(i)::value * AtOnce;
    const CodesOfBlock some = {codes.template of_tile<kCodes>(kFirst), codes.offset, codes.table};
    F32x16 dot[AtOnce][Tokens];
    dot_quads<kCodes, kHalf * kCount, (kHalf + 1) * kCount>(some, input, block, dot);
    if (formula == Formula::kScale) {
      add_dots<Formula::kScale, kHalves, Block>(scales + kFirst, kHalf, input, dot, chain + kFirst);
    } else if (formula == Formula::kBias) {
      add_dots<Formula::kBias, kHalves, Block>(scales + kFirst, kHalf, input, dot, chain + kFirst);
    } else if constexpr (!kHalves) {
      add_dots<Formula::kZero, kHalves, Block>(scales + kFirst, kHalf, input, dot, chain + kFirst);
    }
  });
}

// The scales of a matrix, known at run time or at compile time.
struct AnyScales {
  static constexpr bool kIsKnown = false;
  PackedScales value;

  LANES_INLINE explicit AnyScales(const PackedMatrix& matrix) : value(matrix.scales) {}
};
template <PackedScales kValue>
struct KnownScales {
  static constexpr bool kIsKnown = true;
  static constexpr PackedScales value = kValue;

  LANES_INLINE explicit KnownScales(const PackedMatrix&) {}
};

// Adds one leaf, starting at `begin`, of Tiles tiles, the first of which is tile `first` of the
// cursor, and returns the leaf's end.
template <PackedCodes kCodes, class Scales, class Block, bool kHalves, int AtOnce, int Tiles,
          int Tokens>
LANES_INLINE BlockPlace add_blocks(PartCursor& cursor, BlockPlace begin, const LeafStep& step,
                                   int first, F32x16 (&chain)[Tiles][Tokens]) {
  constexpr size_t kBytes = block_bytes(kCodes);
  constexpr bool kUnrolled = Tokens == 1 || Scales::kIsKnown;
  const PackedMatrix& matrix = *cursor.part->matrix;
  const Scales kind(matrix);
  const Formula formula = formula_of(kind.value);
  const GroupPlace group = cursor.group;
  const auto tiles = static_cast<size_t>(group.tiles);
  const int tile = group.tile + first;
  const std::byte* const group_scales = group.begin + tiles * matrix.scales_at;
  const std::byte* const group_end = group.begin + tiles * matrix.tile_bytes;
  const Prefetch next_codes = {group_scales, cursor.next};
  // The next group may be of another matrix; mostly it has the same form.
  const Prefetch next_scales = {group_end, cursor.next + tiles * matrix.scales_at};
  const auto block_index = static_cast<size_t>(begin.block);
  CodesOfBlock codes = {group.begin + (block_index * tiles + static_cast<size_t>(tile)) * kBytes,
                        matrix.code_offset,
                        {}};
  if constexpr (kCodes == PackedCodes::kTable4) codes.table = ByteTable::load(matrix.table);
  InputPointers<Tokens> input = {cursor.input + block_index * sizeof(Block),
                                 cursor.part->input_stride};
  const std::byte* at = group_scales + begin.scales;
  // The group's first tiles fetch for its other tiles too.
  const bool fetches_own = tile == 0 && (Tokens == 1 || cursor.fetches_own);
  BlockScales scales[Tiles] = {};
  const uint16_t* const pieces = matrix.piece_blocks + begin.piece;
  int32_t block_end = begin.block;
  for (int piece = 0; piece < step.pieces; ++piece) {
    const int blocks = pieces[piece];
    block_end += blocks;
    const ScaleBytes bytes = scale_bytes(kind.value);
    if (Tokens == 1 || fetches_own) {
      next_scales.fetch(at, tiles * (bytes.of_head + static_cast<size_t>(blocks) * bytes.of_block),
                        kDistanceOfScales);
    }
    at = read_heads<kUnrolled>(kind.value, matrix.factor, at, tile, group.tiles, scales);
    for (int block = 0; block < blocks; ++block) {
      if (has_block_scales(kind.value)) {
        at =
            read_blocks_scales<kUnrolled>(kind.value, matrix.factor, at, tile, group.tiles, scales);
      }
      if constexpr (Tokens > 1) cursor.ahead.fetch();
      if constexpr (Tiles == kGroupTiles) {
        if (fetches_own) next_codes.fetch(codes.at, Tiles * kBytes, distance_of_codes<kCodes>());
      } else if (fetches_own) {
        next_codes.fetch(codes.at, tiles * kBytes, distance_of_codes<kCodes>());
      }
      add_block<kCodes, Block, kHalves, 0, AtOnce>(codes, formula, scales, input, chain);
      if constexpr (kHalves) {
        add_block<kCodes, Block, kHalves, 1, AtOnce>(codes, formula, scales, input, chain);
      }
      codes.at += tiles * kBytes;
      input.first += sizeof(Block);
    }
  }
  return {begin.piece + step.pieces, block_end, static_cast<size_t>(at - group_scales)};
}

// PartCursor::add_leaf for blocks, Tiles at a time. The sums of one token stay in registers; with
// more tokens, sums and factors do not fit and stay in memory.
template <PackedCodes kCodes, class Scales, class Block, bool kHalves, int AtOnce, int Tiles,
          int Tokens>
void add_blocks_leaf(PartCursor& cursor, const LeafStep& step, int tiles, F32x16* sums) {
  const BlockPlace begin = cursor.place;
  for (int first = 0; first < tiles; first += Tiles) {
    auto& chain = *reinterpret_cast<F32x16(*)[Tiles][Tokens]>(sums + first * Tokens);
    if constexpr (Tokens > 1) {
      cursor.place =
          add_blocks<kCodes, Scales, Block, kHalves, AtOnce>(cursor, begin, step, first, chain);
    } else {
      F32x16 copy[Tiles][1];
#pragma GCC unroll 4
      for (int tile = 0; tile < Tiles; ++tile) copy[tile][0] = chain[tile][0];
      cursor.place =
          add_blocks<kCodes, Scales, Block, kHalves, AtOnce>(cursor, begin, step, first, copy);
#pragma GCC unroll 4
      for (int tile = 0; tile < Tiles; ++tile) chain[tile][0] = copy[tile][0];
    }
  }
}
