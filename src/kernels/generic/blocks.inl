// Quantised blocks times tokens. The exact sequence, a promise on every instruction set and for any
// division into tiles and tokens. Of one row and token, for each block in ascending order (or for
// columns 0-15, then 16-31 of each block, where halves have scales of their own):
//
//   integers: D = sum of (code - code_offset) * input code, exact, as a float (exact too)
//             S = sum of the input codes, as a float
//   floats:   D = chain of fma(weight, input, D) over all 32 (16) columns in ascending order from
//                 0, weight = code - code_offset. E4M3: weight = value / 256, then D = D * 256.
//             S = the input's sum (prepare.inl)
//   T = scale * D                     without bias and zero point
//   T = fma(bias, S, scale * D)       with a bias
//   T = scale * fma(-zero, S, D)      with a zero point (the fma is exact for integers)
//   integers: chain = fma(T, input scale, chain)
//   floats:   chain = chain + T
//
// Scales: factor * 2^(e - 127); factor * E4M3; d * s and (-m) * t, one multiplication each.
// A block is unpacked once for all tokens.

// Where a part stands: all tiles alike.
struct PartCursor {
  const MatmulPart* part;
  const std::byte* tiles;  // the first tile of this call
  const std::byte* input;  // of the first token of this call
  int32_t column;          // of plain elements
  int32_t piece;
  int32_t block;
  size_t scales;  // bytes behind scales_at
  // Adds one leaf of the part to sums[tile][token] of `tiles` tiles.
  void (*add_leaf)(PartCursor&, const LeafStep&, int tiles, F32x16* sums);
};

LANES_INLINE PartCursor cursor_of(const MatmulPart& part, int tile, int token) {
  const PackedMatrix& matrix = *part.matrix;
  return {.part = &part,
          .tiles = matrix.tiles + static_cast<size_t>(tile) * matrix.tile_bytes,
          .input = static_cast<const std::byte*>(part.input) +
                   static_cast<size_t>(token) * part.input_stride};
}

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

// Goes on with the chains by the dot products of a block or of half of one.
template <class Block, bool kHalves, int Tokens>
LANES_INLINE void add_dots(Formula formula, const BlockScales& scales, int half,
                           InputPointers<Tokens> input, const F32x16 (&dot)[Tokens],
                           F32x16 (&chain)[Tokens]) {
  const F32x16 scale = scales.scale[half];
  if (formula == Formula::kScale) {
#pragma GCC unroll 8
    for (int token = 0; token < Tokens; ++token) {
      chain[token] =
          add_term(mul(scale, dot[token]), input.template at<Block>(token), chain[token]);
    }
    return;
  }
  const F32x16 bias = scales.bias[half];
  if (formula == Formula::kBias) {
#pragma GCC unroll 8
    for (int token = 0; token < Tokens; ++token) {
      const Block& x = input.template at<Block>(token);
      const F32x16 term = fma(bias, input_sum(x, kHalves, half), mul(scale, dot[token]));
      chain[token] = add_term(term, x, chain[token]);
    }
    return;
  }
#pragma GCC unroll 8
  for (int token = 0; token < Tokens; ++token) {
    const Block& x = input.template at<Block>(token);
    const F32x16 term = mul(scale, fma(bias, input_sum(x, kHalves, half), dot[token]));
    chain[token] = add_term(term, x, chain[token]);
  }
}

struct CodesOfBlock {
  const std::byte* at;
  int32_t offset;
  ByteTable table;
};

// Quads [Begin, End) of a block and integers.
template <PackedCodes kCodes, int Begin, int End, int Tokens>
LANES_INLINE void dot_quads(const CodesOfBlock& codes, InputPointers<Tokens> input,
                            const InputBlock8*, F32x16 (&dot)[Tokens]) {
  constexpr bool kIsWhole = End - Begin == kQuads;
  constexpr int kHalf = Begin == 0 ? 0 : 1;
  Dot<quad_bits(kCodes)> sums[Tokens];
#pragma GCC unroll 8
  for (int token = 0; token < Tokens; ++token) {
    const InputBlock8& x = input.template at<InputBlock8>(token);
    sums[token] =
        Dot<quad_bits(kCodes)>::start(kIsWhole ? x.sum : x.half_sums[kHalf], codes.offset);
  }
  for_constants<Begin, End>([&](auto k) LANES_LAMBDA {
    constexpr int kQuad = decltype(k)::value;
    const Quad quad = load_quad<kCodes, kQuad>(codes.at, codes.table);
#pragma GCC unroll 8
    for (int token = 0; token < Tokens; ++token) {
      sums[token].template add<kQuad>(quad,
                                      input.template at<InputBlock8>(token).codes + 4 * kQuad);
    }
  });
#pragma GCC unroll 8
  for (int token = 0; token < Tokens; ++token) dot[token] = sums[token].finish();
}

template <PackedCodes kCodes, int Column>
LANES_INLINE F32x16 column_weights(Quad quad, int32_t offset) {
  if constexpr (kCodes == PackedCodes::kFp8) return column_fp8<Column>(quad);
  return column_codes<Column>(quad, offset);
}

// Quads [Begin, End) of a block and floats.
template <PackedCodes kCodes, int Begin, int End, int Tokens>
LANES_INLINE void dot_quads(const CodesOfBlock& codes, InputPointers<Tokens> input,
                            const InputBlockF*, F32x16 (&dot)[Tokens]) {
#pragma GCC unroll 8
  for (int token = 0; token < Tokens; ++token) dot[token] = F32x16::broadcast(0.0f);
  Quad quads[End - Begin];
  for_constants<Begin, End>([&](auto k) LANES_LAMBDA {
    quads[decltype(k)::value - Begin] =
        load_quad<kCodes, decltype(k)::value>(codes.at, codes.table);
  });
#pragma GCC unroll 1
  for (int k = Begin; k < End; ++k) {
    const Quad quad = quads[k - Begin];
    for_constants<0, 4>([&](auto column) LANES_LAMBDA {
      constexpr int kColumn = decltype(column)::value;
      const F32x16 weight = column_weights<kCodes, kColumn>(quad, codes.offset);
#pragma GCC unroll 8
      for (int token = 0; token < Tokens; ++token) {
        const float x = input.template at<InputBlockF>(token).values[4 * k + kColumn];
        dot[token] = fma(weight, F32x16::broadcast(x), dot[token]);
      }
    });
  }
  if constexpr (kCodes == PackedCodes::kFp8) {
#pragma GCC unroll 8
    for (int token = 0; token < Tokens; ++token) {
      dot[token] = mul(dot[token], F32x16::broadcast(256.0f));
    }
  }
}

template <PackedCodes kCodes, class Block, bool kHalves, int Tokens>
LANES_INLINE void add_block(const CodesOfBlock& codes, Formula formula, const BlockScales& scales,
                            InputPointers<Tokens> input, F32x16 (&chain)[Tokens]) {
  constexpr int kEnd = kHalves ? kQuads / 2 : kQuads;
  const Block* block = nullptr;  // chooses the overload
  F32x16 dot[Tokens];
  dot_quads<kCodes, 0, kEnd>(codes, input, block, dot);
  add_dots<Block, kHalves>(formula, scales, 0, input, dot, chain);
  if constexpr (kHalves) {
    dot_quads<kCodes, kEnd, kQuads>(codes, input, block, dot);
    add_dots<Block, kHalves>(formula, scales, 1, input, dot, chain);
  }
}

// Fetches what will be needed kPrefetchBytes later, from the next tiles of this thread where the
// part of the tile ends before.
LANES_INLINE void prefetch_codes(const std::byte* tile, const PackedMatrix& matrix, int tiles,
                                 size_t offset, size_t bytes) {
  size_t ahead = offset + kPrefetchBytes;
  if (ahead >= matrix.scales_at) {
    ahead += static_cast<size_t>(tiles) * matrix.tile_bytes - matrix.scales_at;
  }
  for (size_t line = 0; line < bytes; line += 64) __builtin_prefetch(tile + ahead + line);
}

constexpr size_t kPrefetchScaleBytes = 512;

template <PackedCodes kCodes, class Block, bool kHalves, int Tokens>
void add_blocks(PartCursor& cursor, const LeafStep& step, int tiles, F32x16* sums) {
  constexpr size_t kBytes = block_bytes(kCodes);
  const PackedMatrix& matrix = *cursor.part->matrix;
  const Formula formula = formula_of(matrix.scales);
  const bool has_own_scales = has_block_scales(matrix.scales);
  const PartCursor begin = cursor;
  for (int i = 0; i < tiles; ++i) {
    const std::byte* tile = begin.tiles + static_cast<size_t>(i) * matrix.tile_bytes;
    const std::byte* at = tile + matrix.scales_at + begin.scales;
    CodesOfBlock codes = {tile + static_cast<size_t>(begin.block) * kBytes, matrix.code_offset, {}};
    if constexpr (kCodes == PackedCodes::kTable4) codes.table = ByteTable::load(matrix.table);
    InputPointers<Tokens> input = {begin.input + static_cast<size_t>(begin.block) * sizeof(Block),
                                   cursor.part->input_stride};
    BlockScales scales = {};
    F32x16 chain[Tokens];
#pragma GCC unroll 8
    for (int token = 0; token < Tokens; ++token) chain[token] = sums[i * Tokens + token];
    for (int piece = 0; piece < step.pieces; ++piece) {
      __builtin_prefetch(at + kPrefetchScaleBytes);
      at = read_head(matrix.scales, matrix.factor, at, scales);
      const int blocks = matrix.piece_blocks[begin.piece + piece];
      for (int block = 0; block < blocks; ++block) {
        if (has_own_scales) at = read_block_scales(matrix.scales, matrix.factor, at, scales);
        prefetch_codes(tile, matrix, tiles, static_cast<size_t>(codes.at - tile), kBytes);
        add_block<kCodes, Block, kHalves>(codes, formula, scales, input, chain);
        codes.at += kBytes;
        input.first += sizeof(Block);
      }
    }
#pragma GCC unroll 8
    for (int token = 0; token < Tokens; ++token) sums[i * Tokens + token] = chain[token];
    cursor.scales = static_cast<size_t>(at - tile) - matrix.scales_at;
    cursor.block = static_cast<int32_t>(static_cast<size_t>(codes.at - tile) / kBytes);
  }
  cursor.piece += step.pieces;
}
