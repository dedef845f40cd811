// The lane vocabulary as one AVX-512 register. Included into the anonymous namespace of
// isa_avx512.cc after simd_scalar.inl, which defines the meaning of each operation and the
// conversion of single elements.

struct F32x16 {
  __m512 v;

  static LANES_INLINE F32x16 broadcast(float value) { return {_mm512_set1_ps(value)}; }
  static LANES_INLINE F32x16 load(const float* from) { return {_mm512_loadu_ps(from)}; }
  static LANES_INLINE F32x16 load(const F16* from) {
    return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)))};
  }
  static LANES_INLINE F32x16 load(const BF16* from) {
    const __m256i half = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
    return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16))};
  }
  static LANES_INLINE F32x16 load_partial(const float* from, int count);
};

LANES_INLINE __mmask16 first_mask(int count) {
  return static_cast<__mmask16>((1u << count) - 1u);
}

LANES_INLINE F32x16 F32x16::load_partial(const float* from, int count) {
  return {_mm512_maskz_loadu_ps(first_mask(count), from)};
}

LANES_INLINE void store(float* to, F32x16 x) {
  _mm512_storeu_ps(to, x.v);
}
LANES_INLINE void store_partial(float* to, F32x16 x, int count) {
  _mm512_mask_storeu_ps(to, first_mask(count), x.v);
}

LANES_INLINE void store_rounded(BF16* to, F32x16 x) {
  const __m512i infinity = _mm512_set1_epi32(0x7f800000);
  const __m512i bits = _mm512_castps_si512(x.v);
  const __m512i magnitude = _mm512_and_si512(bits, _mm512_set1_epi32(0x7fffffff));
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(magnitude, 16), _mm512_set1_epi32(1));
  const __m512i bias = _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff));
  const __m512i largest = _mm512_set1_epi32(0x7f7f0000);
  const __m512i finite = _mm512_min_epi32(_mm512_add_epi32(magnitude, bias), largest);
  const __m512i others =
      _mm512_mask_or_epi32(magnitude, _mm512_cmpgt_epi32_mask(magnitude, infinity), magnitude,
                           _mm512_set1_epi32(0x00400000));
  const __m512i rounded =
      _mm512_mask_blend_epi32(_mm512_cmplt_epi32_mask(magnitude, infinity), others, finite);
  const __m512i sign = _mm512_andnot_si512(_mm512_set1_epi32(0x7fffffff), bits);
  const __m512i halves = _mm512_srli_epi32(_mm512_or_si512(rounded, sign), 16);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_cvtepi32_epi16(halves));
}
// Finite values are limited to the largest half-precision number, whose rounding is then exact.
LANES_INLINE void store_rounded(F16* to, F32x16 x) {
  const __m512 magnitude = _mm512_abs_ps(x.v);
  const __mmask16 is_finite =
      _mm512_cmp_ps_mask(magnitude, _mm512_set1_ps(__builtin_inff()), _CMP_LT_OQ);
  const __m512 sign = _mm512_and_ps(x.v, _mm512_set1_ps(-0.0f));
  const __m512 limited = _mm512_or_ps(_mm512_min_ps(magnitude, _mm512_set1_ps(65504.0f)), sign);
  const __m512 kept = _mm512_mask_blend_ps(is_finite, x.v, limited);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                      _mm512_cvtps_ph(kept, _MM_FROUND_TO_NEAREST_INT));
}

LANES_INLINE F32x16 fma(F32x16 a, F32x16 b, F32x16 c) {
  return {_mm512_fmadd_ps(a.v, b.v, c.v)};
}
LANES_INLINE F32x16 add(F32x16 a, F32x16 b) {
  return {_mm512_add_ps(a.v, b.v)};
}
LANES_INLINE F32x16 sub(F32x16 a, F32x16 b) {
  return {_mm512_sub_ps(a.v, b.v)};
}
LANES_INLINE F32x16 mul(F32x16 a, F32x16 b) {
  return {_mm512_mul_ps(a.v, b.v)};
}
LANES_INLINE F32x16 div(F32x16 a, F32x16 b) {
  return {_mm512_div_ps(a.v, b.v)};
}
LANES_INLINE F32x16 max(F32x16 a, F32x16 b) {
  return {_mm512_max_ps(a.v, b.v)};
}
LANES_INLINE F32x16 sqrt(F32x16 a) {
  return {_mm512_sqrt_ps(a.v)};
}

LANES_INLINE F32x16 select_less(F32x16 a, F32x16 b, F32x16 x, F32x16 y) {
  return {_mm512_mask_blend_ps(_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ), y.v, x.v)};
}

LANES_INLINE F32x16 select_first(int count, F32x16 x, F32x16 y) {
  return {_mm512_mask_blend_ps(first_mask(count), y.v, x.v)};
}

LANES_INLINE F32x16 add_exponent(F32x16 x, F32x16 shifted) {
  const __m512i exponent = _mm512_slli_epi32(_mm512_castps_si512(shifted.v), 23);
  return {_mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(x.v), exponent))};
}

LANES_INLINE float first_lane(F32x16 x) {
  return _mm512_cvtss_f32(x.v);
}

LANES_INLINE float sum_lanes(F32x16 x) {
  const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(x.v), _mm512_extractf32x8_ps(x.v, 1));
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

LANES_INLINE float max_lanes(F32x16 x) {
  const __m256 eight = _mm256_max_ps(_mm512_castps512_ps256(x.v), _mm512_extractf32x8_ps(x.v, 1));
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}
