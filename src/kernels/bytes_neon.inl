// The vocabulary of quantised weights as four NEON registers, four rows of a quad each. Included by
// table_neon.inl after simd_neon.inl; bytes_scalar.inl has the meaning of each operation.

struct Quad {
  uint8x16_t v[4];

  static LANES_INLINE Quad load(const std::byte* from) {
    const uint8_t* bytes = reinterpret_cast<const uint8_t*>(from);
    return {{vld1q_u8(bytes), vld1q_u8(bytes + 16), vld1q_u8(bytes + 32), vld1q_u8(bytes + 48)}};
  }
};

template <int Shift, int Bits>
LANES_INLINE Quad bits_of(Quad a) {
  const uint8x16_t mask = vdupq_n_u8((1 << Bits) - 1);
  for (int i = 0; i < 4; ++i) {
    if constexpr (Shift > 0) a.v[i] = vshrq_n_u8(a.v[i], Shift);
    if constexpr (Shift + Bits < 8) a.v[i] = vandq_u8(a.v[i], mask);
  }
  return a;
}

template <int Shift>
LANES_INLINE Quad join_bits(Quad low, Quad high) {
  for (int i = 0; i < 4; ++i) low.v[i] = vorrq_u8(low.v[i], vshlq_n_u8(high.v[i], Shift));
  return low;
}

struct ByteTable {
  uint8x16_t v;

  static LANES_INLINE ByteTable load(const uint8_t* from) { return {vld1q_u8(from)}; }
};

LANES_INLINE Quad look_up(ByteTable table, Quad index) {
  for (int i = 0; i < 4; ++i) index.v[i] = vqtbl1q_u8(table.v, index.v[i]);
  return index;
}

// Codes of 8 bits are made signed, where no instruction takes unsigned ones; the start value
// corrects for the 128.
#if defined(__ARM_FEATURE_MATMUL_INT8)
constexpr bool kHasUnsignedCodes = true;
#else
constexpr bool kHasUnsignedCodes = false;
#endif
template <int Bits>
LANES_INLINE int8x16_t signed_codes(uint8x16_t codes) {
  if constexpr (Bits == 8) codes = veorq_u8(codes, vdupq_n_u8(128));
  return vreinterpretq_s8_u8(codes);
}
template <int Bits>
LANES_INLINE int32_t start_of_dot(int32_t sum_of_x, int32_t offset) {
  return ((Bits == 8 && !kHasUnsignedCodes ? 128 : 0) - offset) * sum_of_x;
}
LANES_INLINE int8x16_t four_of_x(const int8_t* x) {
  int32_t four;
  __builtin_memcpy(&four, x, sizeof(four));
  return vreinterpretq_s8_s32(vdupq_n_s32(four));
}

#if defined(__ARM_FEATURE_MATMUL_INT8)
// Eight columns of two tokens.
struct EightsOfTwo {
  int8x16_t v;

  static LANES_INLINE EightsOfTwo load(const int8_t* a, const int8_t* b) {
    return {vcombine_s8(vld1_s8(a), vld1_s8(b))};
  }
};

// The dot products of two tokens, a and b: each instruction multiplies eight columns of two rows by
// those of both.
struct DotOfTwo {
  using Input = EightsOfTwo;

  int32x4_t sum[8];  // of two rows: a and b of the first, a and b of the second

  static LANES_INLINE DotOfTwo start(int32_t sum_of_a, int32_t sum_of_b, int32_t offset) {
    const int32x2_t sums = vset_lane_s32(sum_of_b, vdup_n_s32(sum_of_a), 1);
    const int32x4_t start = vmulq_n_s32(vcombine_s32(sums, sums), -offset);
    return {{start, start, start, start, start, start, start, start}};
  }
  // Adds two neighbouring quads to the dot products of all pairs of tokens. The sums of three pairs
  // take 24 registers, so all pairs meet four rows before the next four are unpacked.
  template <int Pairs>
  static LANES_INLINE void add(DotOfTwo (&dots)[Pairs], Quad quad, Quad next,
                               const EightsOfTwo (&x)[Pairs]) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const uint32x4_t four = vreinterpretq_u32_u8(quad.v[i]);
      const uint32x4_t next_four = vreinterpretq_u32_u8(next.v[i]);
      const uint8x16_t low = vreinterpretq_u8_u32(vzip1q_u32(four, next_four));
      const uint8x16_t high = vreinterpretq_u8_u32(vzip2q_u32(four, next_four));
#pragma GCC unroll 4
      for (int pair = 0; pair < Pairs; ++pair) {
        int32x4_t* const sum = dots[pair].sum + 2 * i;
        sum[0] = vusmmlaq_s32(sum[0], low, x[pair].v);
        sum[1] = vusmmlaq_s32(sum[1], high, x[pair].v);
      }
    }
  }
  // The dot products of a (token 0) or b (1).
  LANES_INLINE F32x16 finish(int token) const {
    return for_fours([&](int i) {
      const int32x4_t low = sum[2 * i], high = sum[2 * i + 1];
      return vcvtq_f32_s32(token == 0 ? vuzp1q_s32(low, high) : vuzp2q_s32(low, high));
    });
  }
};
#endif

#if defined(__ARM_FEATURE_DOTPROD)
template <int Bits>
struct Dot {
#if defined(__ARM_FEATURE_MATMUL_INT8)
  using OfTwo = DotOfTwo;
#endif
  int32x4_t sum[4];

  static LANES_INLINE Dot start(int32_t sum_of_x, int32_t offset) {
    const int32x4_t start = vdupq_n_s32(start_of_dot<Bits>(sum_of_x, offset));
    return {{start, start, start, start}};
  }
  template <int K>
  LANES_INLINE void add(Quad codes, const int8_t* x) {
    const int8x16_t four = four_of_x(x);
    for (int i = 0; i < 4; ++i) {
#if defined(__ARM_FEATURE_MATMUL_INT8)
      sum[i] = vusdotq_s32(sum[i], codes.v[i], four);
#else
      sum[i] = vdotq_s32(sum[i], signed_codes<Bits>(codes.v[i]), four);
#endif
    }
  }
  LANES_INLINE F32x16 finish() const {
    return for_fours([&](int i) { return vcvtq_f32_s32(sum[i]); });
  }
};
#else
// Products of pairs of columns are added in 16 bits, one register for two rows: kRun quads fit.
template <int Bits>
struct Dot {
  static constexpr int kRun = Bits <= 5 ? 8 : Bits == 6 ? 4 : 2;

  int32_t begin;
  int32x4_t sum[8];    // of two rows: columns 0 and 1, 2 and 3 of each
  int16x8_t pairs[8];  // single columns of two rows

  static LANES_INLINE Dot start(int32_t sum_of_x, int32_t offset) {
    Dot dot;
    dot.begin = start_of_dot<Bits>(sum_of_x, offset);
    for (int i = 0; i < 8; ++i) {
      dot.sum[i] = vdupq_n_s32(0);
      dot.pairs[i] = vdupq_n_s16(0);
    }
    return dot;
  }
  template <int K>
  LANES_INLINE void add(Quad codes, const int8_t* x) {
    const int8x16_t four = four_of_x(x);
    for (int i = 0; i < 4; ++i) {
      const int8x16_t weights = signed_codes<Bits>(codes.v[i]);
      pairs[2 * i] = vmlal_s8(pairs[2 * i], vget_low_s8(weights), vget_low_s8(four));
      pairs[2 * i + 1] = vmlal_high_s8(pairs[2 * i + 1], weights, four);
    }
    if constexpr (kRun < 8 && K % kRun == kRun - 1) {
      add_pairs();
      for (int i = 0; i < 8; ++i) pairs[i] = vdupq_n_s16(0);
    }
  }
  LANES_INLINE void add_pairs() {
    for (int i = 0; i < 8; ++i) sum[i] = vpadalq_s16(sum[i], pairs[i]);
  }
  LANES_INLINE F32x16 finish() {
    if constexpr (kRun == 8) add_pairs();
    const int32x4_t start = vdupq_n_s32(begin);
    return for_fours([&](int i) {
      return vcvtq_f32_s32(vaddq_s32(start, vpaddq_s32(sum[2 * i], sum[2 * i + 1])));
    });
  }
};
#endif

template <int Column>
LANES_INLINE F32x16 column_codes(Quad quad, int32_t offset) {
  const int32x4_t zero = vdupq_n_s32(offset);
  return for_fours([&](int i) {
    const uint32x4_t rows = vreinterpretq_u32_u8(quad.v[i]);
    // Moves the column to the top, then to the bottom: needs no mask.
    const uint32x4_t codes = vshrq_n_u32(vshlq_n_u32(rows, 24 - 8 * Column), 24);
    return vcvtq_f32_s32(vsubq_s32(vreinterpretq_s32_u32(codes), zero));
  });
}

// Bytes in the high halves of pairs become half-precision numbers.
LANES_INLINE uint16x8_t halves_of_fp8(uint16x8_t bytes) {
  const int16x8_t shifted = vshrq_n_s16(vreinterpretq_s16_u16(bytes), 1);
  return vandq_u16(vreinterpretq_u16_s16(shifted), vdupq_n_u16(0xbf80));
}

template <int Column>
LANES_INLINE F32x16 column_fp8(Quad quad) {
  return for_fours([&](int i) {
    uint16x8_t pairs = vreinterpretq_u16_u8(quad.v[i]);
    if constexpr (Column % 2 == 0) pairs = vshlq_n_u16(pairs, 8);
    const uint16x8_t halves = halves_of_fp8(pairs);
    const uint16x8_t column = Column < 2 ? vuzp1q_u16(halves, halves) : vuzp2q_u16(halves, halves);
    return vcvt_f32_f16(vreinterpret_f16_u16(vget_low_u16(column)));
  });
}

LANES_INLINE uint8x16_t load_sixteen(const std::byte* from) {
  return vld1q_u8(reinterpret_cast<const uint8_t*>(from));
}
// Bytes [4i, 4i + 4) of sixteen unsigned ones as 32 bits each.
LANES_INLINE uint32x4_t widen_four(uint8x16_t bytes, int i) {
  const uint16x8_t eight = i < 2 ? vmovl_u8(vget_low_u8(bytes)) : vmovl_high_u8(bytes);
  return i % 2 == 0 ? vmovl_u16(vget_low_u16(eight)) : vmovl_high_u16(eight);
}
LANES_INLINE F32x16 floats_of_u8(uint8x16_t bytes) {
  return for_fours([&](int i) { return vcvtq_f32_u32(widen_four(bytes, i)); });
}
LANES_INLINE F32x16 load_u4(const std::byte* from) {
  const uint8x8_t bytes = vld1_u8(reinterpret_cast<const uint8_t*>(from));
  const uint8x8x2_t pairs = vzip_u8(vand_u8(bytes, vdup_n_u8(15)), vshr_n_u8(bytes, 4));
  return floats_of_u8(vcombine_u8(pairs.val[0], pairs.val[1]));
}
LANES_INLINE F32x16 load_u8(const std::byte* from) {
  return floats_of_u8(load_sixteen(from));
}
LANES_INLINE F32x16 load_s8(const std::byte* from) {
  const uint8x16_t bytes = veorq_u8(load_sixteen(from), vdupq_n_u8(128));
  const float32x4_t zero = vdupq_n_f32(128.0f);
  return for_fours([&](int i) { return vsubq_f32(vcvtq_f32_u32(widen_four(bytes, i)), zero); });
}
LANES_INLINE F32x16 load_fp8(const std::byte* from) {
  const uint8x16_t bytes = load_sixteen(from);
  const uint16x8_t low = halves_of_fp8(vshll_n_u8(vget_low_u8(bytes), 8));
  const uint16x8_t high = halves_of_fp8(vshll_high_n_u8(bytes, 8));
  return {{vcvt_f32_f16(vreinterpret_f16_u16(vget_low_u16(low))),
           vcvt_f32_f16(vreinterpret_f16_u16(vget_high_u16(low))),
           vcvt_f32_f16(vreinterpret_f16_u16(vget_low_u16(high))),
           vcvt_f32_f16(vreinterpret_f16_u16(vget_high_u16(high)))}};
}
LANES_INLINE F32x16 load_e8m0(const std::byte* from) {
  const uint8x16_t bytes = load_sixteen(from);
  const uint32x4_t least = vdupq_n_u32(0x00400000);
  return for_fours([&](int i) {
    return vreinterpretq_f32_u32(vmaxq_u32(vshlq_n_u32(widen_four(bytes, i), 23), least));
  });
}

LANES_INLINE uint32x4_t max_magnitude(F32x16 x) {
  const uint32x4_t mask = vdupq_n_u32(0x7fffffff);
  uint32x4_t most = vandq_u32(vreinterpretq_u32_f32(x.v[0]), mask);
  for (int i = 1; i < 4; ++i) {
    most = vmaxq_u32(most, vandq_u32(vreinterpretq_u32_f32(x.v[i]), mask));
  }
  return most;
}
LANES_INLINE uint32_t max_magnitude(F32x16 x, F32x16 y) {
  return vmaxvq_u32(vmaxq_u32(max_magnitude(x), max_magnitude(y)));
}

LANES_INLINE int32x4_t rounded(float32x4_t x) {
  const float32x4_t shifted = vaddq_f32(x, vdupq_n_f32(0x1.8p23f));
  return vsubq_s32(vreinterpretq_s32_f32(shifted), vdupq_n_s32(0x4b400000));
}
LANES_INLINE int32_t store_rounded(int8_t* to, F32x16 x) {
  const int16x8_t low = vcombine_s16(vmovn_s32(rounded(x.v[0])), vmovn_s32(rounded(x.v[1])));
  const int16x8_t high = vcombine_s16(vmovn_s32(rounded(x.v[2])), vmovn_s32(rounded(x.v[3])));
  const int8x16_t codes = vcombine_s8(vmovn_s16(low), vmovn_s16(high));
  vst1q_s8(to, codes);
  return vaddlvq_s8(codes);
}
