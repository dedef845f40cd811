// The vocabulary of quantised weights as one AVX-512 register for a quad, with VNNI. Included into
// the anonymous namespace of isa_avx512.cc after simd_avx512.inl; bytes_scalar.inl has the meaning
// of each operation.

struct Quad {
  __m512i v;

  static LANES_INLINE Quad load(const std::byte* from) { return {_mm512_loadu_si512(from)}; }
};

// Shifts work on pairs of bytes; the mask removes bits from the neighbour.
template <int Shift, int Bits>
LANES_INLINE Quad bits_of(Quad a) {
  const __m512i mask = _mm512_set1_epi8(static_cast<char>((1 << Bits) - 1));
  if constexpr (Shift == 0) return {_mm512_and_si512(a.v, mask)};
  return {_mm512_and_si512(_mm512_srli_epi16(a.v, Shift), mask)};
}

template <int Shift>
LANES_INLINE Quad join_bits(Quad low, Quad high) {
  return {_mm512_or_si512(low.v, _mm512_slli_epi16(high.v, Shift))};
}

struct ByteTable {
  __m512i v;

  static LANES_INLINE ByteTable load(const uint8_t* from) {
    return {_mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)))};
  }
};

LANES_INLINE Quad look_up(ByteTable table, Quad index) {
  return {_mm512_shuffle_epi8(table.v, index.v)};
}

template <int Bits>
struct Dot {
  __m512i sum;

  static LANES_INLINE Dot start(int32_t sum_of_x, int32_t offset) {
    return {_mm512_set1_epi32(-offset * sum_of_x)};
  }
  template <int K>
  LANES_INLINE void add(Quad codes, const int8_t* x) {
    int32_t four;
    __builtin_memcpy(&four, x, sizeof(four));
    sum = _mm512_dpbusd_epi32(sum, codes.v, _mm512_set1_epi32(four));
  }
  LANES_INLINE F32x16 finish() const { return {_mm512_cvtepi32_ps(sum)}; }
};

// The code becomes the lowest bits of 2^23 + code.
template <int Column>
LANES_INLINE F32x16 column_codes(Quad quad, int32_t offset) {
  constexpr int kAndOr = 0xea;  // (a & b) | c
  const __m512i bits =
      _mm512_ternarylogic_epi32(_mm512_srli_epi32(quad.v, 8 * Column), _mm512_set1_epi32(0xff),
                                _mm512_set1_epi32(0x4b000000), kAndOr);
  const __m512 zero = _mm512_set1_ps(0x1p23f + static_cast<float>(offset));
  return {_mm512_sub_ps(_mm512_castsi512_ps(bits), zero)};
}

// Bytes in the high halves of pairs become half-precision numbers.
LANES_INLINE __m512i halves_of_fp8(__m512i bytes) {
  return _mm512_and_si512(_mm512_srai_epi16(bytes, 1),
                          _mm512_set1_epi16(static_cast<int16_t>(0xbf80)));
}

template <int Column>
LANES_INLINE F32x16 column_fp8(Quad quad) {
  const __m512i halves = halves_of_fp8(Column % 2 == 0 ? _mm512_slli_epi16(quad.v, 8) : quad.v);
  // Even ones of the 32 are column 0 or 1, odd ones column 2 or 3.
  const __m512i places =
      _mm512_set_epi16(31, 29, 27, 25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1, 30, 28, 26, 24,
                       22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
  const __m512i sorted = _mm512_permutexvar_epi16(places, halves);
  return {_mm512_cvtph_ps(Column < 2 ? _mm512_castsi512_si256(sorted)
                                     : _mm512_extracti64x4_epi64(sorted, 1))};
}

LANES_INLINE __m128i load_sixteen(const std::byte* from) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
}
LANES_INLINE F32x16 load_u4(const std::byte* from) {
  const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from));
  const __m128i pairs = _mm_unpacklo_epi8(bytes, _mm_srli_epi16(bytes, 4));
  const __m128i codes = _mm_and_si128(pairs, _mm_set1_epi8(15));
  return {_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(codes))};
}
LANES_INLINE F32x16 load_u8(const std::byte* from) {
  return {_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(load_sixteen(from)))};
}
LANES_INLINE F32x16 load_s8(const std::byte* from) {
  return {_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(load_sixteen(from)))};
}
LANES_INLINE F32x16 load_fp8(const std::byte* from) {
  const __m256i bytes = _mm256_slli_epi16(_mm256_cvtepu8_epi16(load_sixteen(from)), 8);
  return {_mm512_cvtph_ps(_mm512_castsi512_si256(halves_of_fp8(_mm512_castsi256_si512(bytes))))};
}
LANES_INLINE F32x16 load_e8m0(const std::byte* from) {
  const __m512i bits = _mm512_slli_epi32(_mm512_cvtepu8_epi32(load_sixteen(from)), 23);
  // Compared as unsigned numbers: 2^-127 is subnormal, and 255 does not reach the sign.
  return {_mm512_castsi512_ps(_mm512_max_epu32(bits, _mm512_set1_epi32(0x00400000)))};
}

LANES_INLINE uint32_t max_magnitude(F32x16 x, F32x16 y) {
  const __m512i mask = _mm512_set1_epi32(0x7fffffff);
  const __m512i a = _mm512_and_si512(_mm512_castps_si512(x.v), mask);
  const __m512i b = _mm512_and_si512(_mm512_castps_si512(y.v), mask);
  return _mm512_reduce_max_epu32(_mm512_max_epu32(a, b));
}

LANES_INLINE int32_t store_rounded(int8_t* to, F32x16 x) {
  const __m512 shifted = _mm512_add_ps(x.v, _mm512_set1_ps(0x1.8p23f));
  const __m512i codes =
      _mm512_sub_epi32(_mm512_castps_si512(shifted), _mm512_set1_epi32(0x4b400000));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm512_cvtepi32_epi8(codes));
  return _mm512_reduce_add_epi32(codes);
}
