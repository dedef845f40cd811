// The vocabulary of quantised weights as two AVX registers, rows 0-7 and 8-15 of a quad. Included
// into the anonymous namespace of isa_avx2.cc after simd_avx2.inl; bytes_scalar.inl has the meaning
// of each operation.

struct Quad {
  __m256i low;
  __m256i high;

  static LANES_INLINE Quad load(const std::byte* from) {
    const __m256i* registers = reinterpret_cast<const __m256i*>(from);
    return {_mm256_loadu_si256(registers), _mm256_loadu_si256(registers + 1)};
  }
};

// Shifts work on pairs of bytes; the mask removes bits from the neighbour.
template <int Shift, int Bits>
LANES_INLINE Quad bits_of(Quad a) {
  const __m256i mask = _mm256_set1_epi8(static_cast<char>((1 << Bits) - 1));
  if constexpr (Shift == 0) {
    return {_mm256_and_si256(a.low, mask), _mm256_and_si256(a.high, mask)};
  }
  return {_mm256_and_si256(_mm256_srli_epi16(a.low, Shift), mask),
          _mm256_and_si256(_mm256_srli_epi16(a.high, Shift), mask)};
}

template <int Shift>
LANES_INLINE Quad join_bits(Quad low, Quad high) {
  return {_mm256_or_si256(low.low, _mm256_slli_epi16(high.low, Shift)),
          _mm256_or_si256(low.high, _mm256_slli_epi16(high.high, Shift))};
}

struct ByteTable {
  __m256i v;

  static LANES_INLINE ByteTable load(const uint8_t* from) {
    return {_mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)))};
  }
};

LANES_INLINE Quad look_up(ByteTable table, Quad index) {
  return {_mm256_shuffle_epi8(table.v, index.low), _mm256_shuffle_epi8(table.v, index.high)};
}

// Pairs of products are added in 16 bits: kRun quads fit, 2 * (2^Bits - 1) * 127 each. Codes of 8
// bits are made signed, so that 2 * 128 * 127 fits; the start value corrects for the 128.
template <int Bits>
struct Dot {
  static constexpr int kRun = Bits <= 4 ? 8 : Bits == 5 ? 4 : Bits == 6 ? 2 : 1;

  __m256i low, high;              // of 32 bits
  __m256i pairs_low, pairs_high;  // of 16 bits

  static LANES_INLINE Dot start(int32_t sum_of_x, int32_t offset) {
    const __m256i start = _mm256_set1_epi32(((Bits == 8 ? 128 : 0) - offset) * sum_of_x);
    return {start, start, _mm256_setzero_si256(), _mm256_setzero_si256()};
  }

  static LANES_INLINE __m256i pairs(__m256i codes, __m256i x) {
    if constexpr (Bits < 8) return _mm256_maddubs_epi16(codes, x);
    const __m256i weights = _mm256_xor_si256(codes, _mm256_set1_epi8(-128));
    return _mm256_maddubs_epi16(_mm256_abs_epi8(weights), _mm256_sign_epi8(x, weights));
  }

  template <int K>
  LANES_INLINE void add(Quad codes, const int8_t* x) {
    int32_t four;
    __builtin_memcpy(&four, x, sizeof(four));
    const __m256i all = _mm256_set1_epi32(four);
    pairs_low = _mm256_add_epi16(pairs_low, pairs(codes.low, all));
    pairs_high = _mm256_add_epi16(pairs_high, pairs(codes.high, all));
    if constexpr (kRun < 8 && K % kRun == kRun - 1) {
      add_pairs();
      pairs_low = pairs_high = _mm256_setzero_si256();
    }
  }

  LANES_INLINE void add_pairs() {
    const __m256i ones = _mm256_set1_epi16(1);
    low = _mm256_add_epi32(low, _mm256_madd_epi16(pairs_low, ones));
    high = _mm256_add_epi32(high, _mm256_madd_epi16(pairs_high, ones));
  }

  LANES_INLINE F32x16 finish() {
    if constexpr (kRun == 8) add_pairs();
    return {_mm256_cvtepi32_ps(low), _mm256_cvtepi32_ps(high)};
  }
};

// The code becomes the lowest bits of 2^23 + code.
template <int Column>
LANES_INLINE __m256 column_codes(__m256i codes, int32_t offset) {
  const __m256i byte =
      _mm256_and_si256(_mm256_srli_epi32(codes, 8 * Column), _mm256_set1_epi32(0xff));
  const __m256i bits = _mm256_or_si256(byte, _mm256_set1_epi32(0x4b000000));
  const __m256 zero = _mm256_set1_ps(0x1p23f + static_cast<float>(offset));
  return _mm256_sub_ps(_mm256_castsi256_ps(bits), zero);
}
template <int Column>
LANES_INLINE F32x16 column_codes(Quad quad, int32_t offset) {
  return {column_codes<Column>(quad.low, offset), column_codes<Column>(quad.high, offset)};
}

// Bytes in the high halves of pairs become half-precision numbers.
LANES_INLINE __m256i halves_of_fp8(__m256i bytes) {
  return _mm256_and_si256(_mm256_srai_epi16(bytes, 1),
                          _mm256_set1_epi16(static_cast<int16_t>(0xbf80)));
}

template <int Column>
LANES_INLINE __m256 column_fp8(__m256i bytes) {
  const __m256i halves = halves_of_fp8(Column % 2 == 0 ? _mm256_slli_epi16(bytes, 8) : bytes);
  // Even ones of the sixteen are column 0 or 1, odd ones column 2 or 3.
  const __m256i places = _mm256_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15, 0,
                                          1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15);
  const __m256i sorted =
      _mm256_permute4x64_epi64(_mm256_shuffle_epi8(halves, places), _MM_SHUFFLE(3, 1, 2, 0));
  return _mm256_cvtph_ps(Column < 2 ? _mm256_castsi256_si128(sorted)
                                    : _mm256_extracti128_si256(sorted, 1));
}
template <int Column>
LANES_INLINE F32x16 column_fp8(Quad quad) {
  return {column_fp8<Column>(quad.low), column_fp8<Column>(quad.high)};
}

LANES_INLINE __m128i load_sixteen(const std::byte* from) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
}
LANES_INLINE __m128i high_eight(__m128i bytes) {
  return _mm_srli_si128(bytes, 8);
}
LANES_INLINE F32x16 floats_of_u8(__m128i bytes) {
  return {_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes)),
          _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(high_eight(bytes)))};
}
LANES_INLINE F32x16 load_u4(const std::byte* from) {
  const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from));
  const __m128i pairs = _mm_unpacklo_epi8(bytes, _mm_srli_epi16(bytes, 4));
  return floats_of_u8(_mm_and_si128(pairs, _mm_set1_epi8(15)));
}
LANES_INLINE F32x16 load_u8(const std::byte* from) {
  return floats_of_u8(load_sixteen(from));
}
LANES_INLINE F32x16 load_s8(const std::byte* from) {
  const __m128i bytes = load_sixteen(from);
  return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes)),
          _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(high_eight(bytes)))};
}
LANES_INLINE F32x16 load_fp8(const std::byte* from) {
  const __m256i halves =
      halves_of_fp8(_mm256_slli_epi16(_mm256_cvtepu8_epi16(load_sixteen(from)), 8));
  return {_mm256_cvtph_ps(_mm256_castsi256_si128(halves)),
          _mm256_cvtph_ps(_mm256_extracti128_si256(halves, 1))};
}
LANES_INLINE __m256 e8m0(__m128i bytes) {
  const __m256i bits = _mm256_slli_epi32(_mm256_cvtepu8_epi32(bytes), 23);
  return _mm256_castsi256_ps(_mm256_max_epi32(bits, _mm256_set1_epi32(0x00400000)));
}
LANES_INLINE F32x16 load_e8m0(const std::byte* from) {
  const __m128i bytes = load_sixteen(from);
  return {e8m0(bytes), e8m0(high_eight(bytes))};
}

LANES_INLINE __m256i magnitude(__m256 x) {
  return _mm256_and_si256(_mm256_castps_si256(x), _mm256_set1_epi32(0x7fffffff));
}
LANES_INLINE uint32_t max_magnitude(F32x16 x, F32x16 y) {
  const __m256i eight = _mm256_max_epi32(_mm256_max_epi32(magnitude(x.low), magnitude(x.high)),
                                         _mm256_max_epi32(magnitude(y.low), magnitude(y.high)));
  __m128i four = _mm_max_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
  four = _mm_max_epi32(four, _mm_shuffle_epi32(four, _MM_SHUFFLE(1, 0, 3, 2)));
  four = _mm_max_epi32(four, _mm_shuffle_epi32(four, _MM_SHUFFLE(2, 3, 0, 1)));
  return static_cast<uint32_t>(_mm_cvtsi128_si32(four));
}

LANES_INLINE __m256i rounded(__m256 x) {
  const __m256 shifted = _mm256_add_ps(x, _mm256_set1_ps(0x1.8p23f));
  return _mm256_sub_epi32(_mm256_castps_si256(shifted), _mm256_set1_epi32(0x4b400000));
}
LANES_INLINE int32_t store_rounded(int8_t* to, F32x16 x) {
  const __m256i low = rounded(x.low), high = rounded(x.high);
  const __m256i shorts =
      _mm256_permute4x64_epi64(_mm256_packs_epi32(low, high), _MM_SHUFFLE(3, 1, 2, 0));
  const __m128i bytes =
      _mm_packs_epi16(_mm256_castsi256_si128(shorts), _mm256_extracti128_si256(shorts, 1));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), bytes);
  const __m256i eight = _mm256_add_epi32(low, high);
  __m128i four = _mm_add_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
  four = _mm_add_epi32(four, _mm_shuffle_epi32(four, _MM_SHUFFLE(1, 0, 3, 2)));
  four = _mm_add_epi32(four, _mm_shuffle_epi32(four, _MM_SHUFFLE(2, 3, 0, 1)));
  return _mm_cvtsi128_si32(four);
}
