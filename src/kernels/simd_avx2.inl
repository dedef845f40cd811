// The lane vocabulary as two AVX registers, lanes 0-7 and 8-15. Included into the anonymous
// namespace of isa_avx2.cc after simd_scalar.inl, which defines the meaning of each operation.

struct F32x16 {
  __m256 low;
  __m256 high;

  static LANES_INLINE F32x16 broadcast(float value) {
    const __m256 v = _mm256_set1_ps(value);
    return {v, v};
  }
  static LANES_INLINE F32x16 load(const float* from) {
    return {_mm256_loadu_ps(from), _mm256_loadu_ps(from + 8)};
  }
  static LANES_INLINE F32x16 load(const F16* from) {
    return {_mm256_cvtph_ps(load_eight(from)), _mm256_cvtph_ps(load_eight(from + 8))};
  }
  static LANES_INLINE F32x16 load(const BF16* from) {
    return {widen(load_eight(from)), widen(load_eight(from + 8))};
  }
  static LANES_INLINE F32x16 load_partial(const float* from, int count);

  static LANES_INLINE __m128i load_eight(const void* from) {
    return _mm_loadu_si128(static_cast<const __m128i*>(from));
  }
  static LANES_INLINE __m256 widen(__m128i eight) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(eight), 16));
  }
};

// All bits set in the first `count` of sixteen lanes; eight of them, starting at `begin`.
LANES_INLINE __m256i first_mask(int count, int begin) {
  const __m256i index = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(count - begin), index);
}

LANES_INLINE F32x16 F32x16::load_partial(const float* from, int count) {
  return {_mm256_maskload_ps(from, first_mask(count, 0)),
          _mm256_maskload_ps(from + 8, first_mask(count, 8))};
}

LANES_INLINE void store(float* to, F32x16 x) {
  _mm256_storeu_ps(to, x.low);
  _mm256_storeu_ps(to + 8, x.high);
}
LANES_INLINE void store_partial(float* to, F32x16 x, int count) {
  _mm256_maskstore_ps(to, first_mask(count, 0), x.low);
  _mm256_maskstore_ps(to + 8, first_mask(count, 8), x.high);
}

LANES_INLINE __m128i eight_bf16(__m256 x) {
  const __m256i infinity = _mm256_set1_epi32(0x7f800000);
  const __m256i bits = _mm256_castps_si256(x);
  const __m256i magnitude = _mm256_and_si256(bits, _mm256_set1_epi32(0x7fffffff));
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(magnitude, 16), _mm256_set1_epi32(1));
  const __m256i bias = _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff));
  const __m256i largest = _mm256_set1_epi32(0x7f7f0000);
  const __m256i finite = _mm256_min_epi32(_mm256_add_epi32(magnitude, bias), largest);
  const __m256i quiet =
      _mm256_and_si256(_mm256_cmpgt_epi32(magnitude, infinity), _mm256_set1_epi32(0x00400000));
  const __m256i is_finite = _mm256_cmpgt_epi32(infinity, magnitude);
  const __m256i rounded = _mm256_blendv_epi8(_mm256_or_si256(magnitude, quiet), finite, is_finite);
  const __m256i sign = _mm256_andnot_si256(_mm256_set1_epi32(0x7fffffff), bits);
  const __m256i halves = _mm256_srli_epi32(_mm256_or_si256(rounded, sign), 16);
  return _mm_packus_epi32(_mm256_castsi256_si128(halves), _mm256_extracti128_si256(halves, 1));
}
// Finite values are limited to the largest half-precision number, whose rounding is then exact.
LANES_INLINE __m128i eight_f16(__m256 x) {
  const __m256 largest = _mm256_set1_ps(65504.0f);
  const __m256 sign = _mm256_set1_ps(-0.0f);
  const __m256 magnitude = _mm256_andnot_ps(sign, x);
  const __m256 limited = _mm256_or_ps(_mm256_min_ps(magnitude, largest), _mm256_and_ps(sign, x));
  const __m256 is_finite = _mm256_cmp_ps(magnitude, _mm256_set1_ps(__builtin_inff()), _CMP_LT_OQ);
  return _mm256_cvtps_ph(_mm256_blendv_ps(x, limited, is_finite), _MM_FROUND_TO_NEAREST_INT);
}
LANES_INLINE void store_eight(void* to, __m128i eight) {
  _mm_storeu_si128(static_cast<__m128i*>(to), eight);
}
LANES_INLINE void store_rounded(BF16* to, F32x16 x) {
  store_eight(to, eight_bf16(x.low));
  store_eight(to + 8, eight_bf16(x.high));
}
LANES_INLINE void store_rounded(F16* to, F32x16 x) {
  store_eight(to, eight_f16(x.low));
  store_eight(to + 8, eight_f16(x.high));
}

LANES_INLINE F32x16 fma(F32x16 a, F32x16 b, F32x16 c) {
  return {_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high)};
}
LANES_INLINE F32x16 add(F32x16 a, F32x16 b) {
  return {_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)};
}
LANES_INLINE F32x16 sub(F32x16 a, F32x16 b) {
  return {_mm256_sub_ps(a.low, b.low), _mm256_sub_ps(a.high, b.high)};
}
LANES_INLINE F32x16 mul(F32x16 a, F32x16 b) {
  return {_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)};
}
LANES_INLINE F32x16 div(F32x16 a, F32x16 b) {
  return {_mm256_div_ps(a.low, b.low), _mm256_div_ps(a.high, b.high)};
}
LANES_INLINE F32x16 max(F32x16 a, F32x16 b) {
  return {_mm256_max_ps(a.low, b.low), _mm256_max_ps(a.high, b.high)};
}
LANES_INLINE F32x16 sqrt(F32x16 a) {
  return {_mm256_sqrt_ps(a.low), _mm256_sqrt_ps(a.high)};
}

LANES_INLINE F32x16 select_less(F32x16 a, F32x16 b, F32x16 x, F32x16 y) {
  return {_mm256_blendv_ps(y.low, x.low, _mm256_cmp_ps(a.low, b.low, _CMP_LT_OQ)),
          _mm256_blendv_ps(y.high, x.high, _mm256_cmp_ps(a.high, b.high, _CMP_LT_OQ))};
}

LANES_INLINE F32x16 select_first(int count, F32x16 x, F32x16 y) {
  return {_mm256_blendv_ps(y.low, x.low, _mm256_castsi256_ps(first_mask(count, 0))),
          _mm256_blendv_ps(y.high, x.high, _mm256_castsi256_ps(first_mask(count, 8)))};
}

LANES_INLINE __m256 add_exponent(__m256 x, __m256 shifted) {
  const __m256i exponent = _mm256_slli_epi32(_mm256_castps_si256(shifted), 23);
  return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(x), exponent));
}
LANES_INLINE F32x16 add_exponent(F32x16 x, F32x16 shifted) {
  return {add_exponent(x.low, shifted.low), add_exponent(x.high, shifted.high)};
}

LANES_INLINE float first_lane(F32x16 x) {
  return _mm256_cvtss_f32(x.low);
}

LANES_INLINE float sum_lanes(F32x16 x) {
  const __m256 eight = _mm256_add_ps(x.low, x.high);
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

LANES_INLINE float max_lanes(F32x16 x) {
  const __m256 eight = _mm256_max_ps(x.low, x.high);
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}
