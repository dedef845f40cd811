// The scales of a block (layout: PackedScales in packed_matrix.h), for sixteen rows.

// How the dot product of a block becomes its contribution; blocks.inl has the formulas.
enum class Formula { kScale, kBias, kZero };

struct BlockScales {
  F32x16 scale[2];  // for columns 0-15 and 16-31; only [0] if the halves share them
  F32x16 bias[2];   // the added value, or minus the zero point
  F32x16 head[2];   // d and -m of a super-block
};

LANES_INLINE constexpr Formula formula_of(PackedScales scales) {
  switch (scales) {
    case PackedScales::kF32Bias:
    case PackedScales::kF16Bias:
    case PackedScales::kBF16Bias:
    case PackedScales::kSuperMin:
    case PackedScales::kSuperMinHalves:
      return Formula::kBias;
    case PackedScales::kF32Zero:
    case PackedScales::kF16Zero:
    case PackedScales::kBF16Zero:
      return Formula::kZero;
    default:
      return Formula::kScale;
  }
}

LANES_INLINE constexpr bool has_halves(PackedScales scales) {
  return scales == PackedScales::kE4M3Halves || scales == PackedScales::kSuperHalves ||
         scales == PackedScales::kSuperMinHalves;
}

// Whether each block has its own data in the stream of scales.
LANES_INLINE constexpr bool has_block_scales(PackedScales scales) {
  return has_halves(scales) || scales == PackedScales::kSuper || scales == PackedScales::kSuperMin;
}

LANES_INLINE F32x16 negative(F32x16 x) {
  return sub(F32x16::broadcast(0.0f), x);
}

template <class Element>
LANES_INLINE F32x16 load_elements(const std::byte* from) {
  return F32x16::load(reinterpret_cast<const Element*>(from));
}

// Scales of a type, then the biases or zero points of the formula.
template <class Element>
LANES_INLINE void read_scales(Formula formula, const std::byte* at, BlockScales& to) {
  to.scale[0] = load_elements<Element>(at);
  at += kLanes * sizeof(Element);
  if (formula == Formula::kBias) {
    to.bias[0] = load_elements<Element>(at);
  } else if (formula == Formula::kZero) {
    to.bias[0] = negative(load_u8(at));
  }
}

// Calls operation(0), ..., operation(Tiles - 1), from one copy of it or from Tiles.
template <bool kUnrolled, int Tiles, class Operation>
LANES_INLINE void for_tiles(Operation operation) {
  if constexpr (kUnrolled) {
#pragma GCC unroll 4
    for (int tile = 0; tile < Tiles; ++tile) operation(tile);
  } else {
#pragma GCC unroll 1
    for (int tile = 0; tile < Tiles; ++tile) operation(tile);
  }
}

// Reads the head of a piece of one tile.
LANES_INLINE void read_head(PackedScales scales, float factor, const std::byte* at,
                            BlockScales& to) {
  switch (scales) {
    case PackedScales::kF32:
    case PackedScales::kF32Bias:
    case PackedScales::kF32Zero:
      return read_scales<float>(formula_of(scales), at, to);
    case PackedScales::kF16:
    case PackedScales::kF16Bias:
    case PackedScales::kF16Zero:
      return read_scales<F16>(formula_of(scales), at, to);
    case PackedScales::kBF16:
    case PackedScales::kBF16Bias:
    case PackedScales::kBF16Zero:
      return read_scales<BF16>(formula_of(scales), at, to);
    case PackedScales::kE8M0:
      to.scale[0] = mul(F32x16::broadcast(factor), load_e8m0(at));
      return;
    case PackedScales::kTileF32: {
      float scale;
      __builtin_memcpy(&scale, at, sizeof(scale));
      to.scale[0] = F32x16::broadcast(scale);
      return;
    }
    case PackedScales::kSuper:
    case PackedScales::kSuperHalves:
      to.head[0] = load_elements<F16>(at);
      return;
    case PackedScales::kSuperMin:
    case PackedScales::kSuperMinHalves:
      to.head[0] = load_elements<F16>(at);
      to.head[1] = negative(load_elements<F16>(at + kLanes * sizeof(F16)));
      return;
    default:
      return;
  }
}

// Reads one block's data of one tile.
LANES_INLINE void read_block_scales(PackedScales scales, float factor, const std::byte* at,
                                    BlockScales& to) {
  switch (scales) {
    case PackedScales::kE4M3Halves:
      for (int half = 0; half < 2; ++half) {
        const F32x16 value = mul(load_fp8(at + half * kLanes), F32x16::broadcast(256.0f));
        to.scale[half] = mul(F32x16::broadcast(factor), value);
      }
      return;
    case PackedScales::kSuper:
      to.scale[0] = mul(to.head[0], load_s8(at));
      return;
    case PackedScales::kSuperHalves:
      for (int half = 0; half < 2; ++half) {
        to.scale[half] = mul(to.head[0], load_s8(at + half * kLanes));
      }
      return;
    case PackedScales::kSuperMin:
      to.scale[0] = mul(to.head[0], load_u8(at));
      to.bias[0] = mul(to.head[1], load_u8(at + kLanes));
      return;
    case PackedScales::kSuperMinHalves:
      for (int half = 0; half < 2; ++half) {
        to.scale[half] = mul(to.head[0], load_u8(at + half * kLanes));
        to.bias[half] = mul(to.head[1], load_u8(at + (2 + half) * kLanes));
      }
      return;
    default:
      return;
  }
}

// The same for tiles [first, first + Tiles) of a group of `tiles`; returns the end of the group's
// heads, or data of the block. The copies for several tiles are worth their compile time only if
// the scales stay in registers.
template <bool kUnrolled, int Tiles>
LANES_INLINE const std::byte* read_heads(PackedScales scales, float factor, const std::byte* at,
                                         int first, int tiles, BlockScales (&to)[Tiles]) {
  const size_t bytes = scale_bytes(scales).of_head;
  const std::byte* from = at + static_cast<size_t>(first) * bytes;
  for_tiles<kUnrolled, Tiles>([&](int tile) LANES_LAMBDA {
    read_head(scales, factor, from + static_cast<size_t>(tile) * bytes, to[tile]);
  });
  return at + static_cast<size_t>(tiles) * bytes;
}
template <bool kUnrolled, int Tiles>
LANES_INLINE const std::byte* read_blocks_scales(PackedScales scales, float factor,
                                                 const std::byte* at, int first, int tiles,
                                                 BlockScales (&to)[Tiles]) {
  const size_t bytes = scale_bytes(scales).of_block;
  const std::byte* from = at + static_cast<size_t>(first) * bytes;
  for_tiles<kUnrolled, Tiles>([&](int tile) LANES_LAMBDA {
    read_block_scales(scales, factor, from + static_cast<size_t>(tile) * bytes, to[tile]);
  });
  return at + static_cast<size_t>(tiles) * bytes;
}
