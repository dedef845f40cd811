// The lane vocabulary as four NEON registers (AArch64). Included by table_neon.inl after
// simd_scalar.inl, which defines the meaning of each operation.

struct F32x16 {
  float32x4_t v[4];

  static LANES_INLINE F32x16 broadcast(float value) {
    const float32x4_t four = vdupq_n_f32(value);
    return {{four, four, four, four}};
  }
  static LANES_INLINE F32x16 load(const float* from) {
    return {{vld1q_f32(from), vld1q_f32(from + 4), vld1q_f32(from + 8), vld1q_f32(from + 12)}};
  }
  static LANES_INLINE F32x16 load(const F16* from) {
    const float16x8_t low = vreinterpretq_f16_u16(vld1q_u16(&from[0].bits));
    const float16x8_t high = vreinterpretq_f16_u16(vld1q_u16(&from[8].bits));
    return {{vcvt_f32_f16(vget_low_f16(low)), vcvt_f32_f16(vget_high_f16(low)),
             vcvt_f32_f16(vget_low_f16(high)), vcvt_f32_f16(vget_high_f16(high))}};
  }
  static LANES_INLINE F32x16 load(const BF16* from) {
    const uint16x8_t low = vld1q_u16(&from[0].bits);
    const uint16x8_t high = vld1q_u16(&from[8].bits);
    return {{widen(vget_low_u16(low)), widen(vget_high_u16(low)), widen(vget_low_u16(high)),
             widen(vget_high_u16(high))}};
  }
  static LANES_INLINE F32x16 load_partial(const float* from, int count) {
    float lanes[16] = {};
    for (int i = 0; i < count; ++i) lanes[i] = from[i];
    return load(lanes);
  }

  static LANES_INLINE float32x4_t widen(uint16x4_t four) {
    return vreinterpretq_f32_u32(vshlq_n_u32(vmovl_u16(four), 16));
  }
};

LANES_INLINE void store(float* to, F32x16 x) {
  for (int i = 0; i < 4; ++i) vst1q_f32(to + 4 * i, x.v[i]);
}
LANES_INLINE void store_partial(float* to, F32x16 x, int count) {
  float lanes[16];
  store(lanes, x);
  for (int i = 0; i < count; ++i) to[i] = lanes[i];
}

LANES_INLINE uint16x4_t four_bf16(float32x4_t x) {
  const uint32x4_t infinity = vdupq_n_u32(0x7f800000);
  const uint32x4_t bits = vreinterpretq_u32_f32(x);
  const uint32x4_t magnitude = vandq_u32(bits, vdupq_n_u32(0x7fffffff));
  const uint32x4_t odd = vandq_u32(vshrq_n_u32(magnitude, 16), vdupq_n_u32(1));
  const uint32x4_t sum = vaddq_u32(magnitude, vaddq_u32(odd, vdupq_n_u32(0x7fff)));
  const uint32x4_t finite = vminq_u32(sum, vdupq_n_u32(0x7f7f0000));
  const uint32x4_t quiet = vandq_u32(vcgtq_u32(magnitude, infinity), vdupq_n_u32(0x00400000));
  const uint32x4_t rounded =
      vbslq_u32(vcltq_u32(magnitude, infinity), finite, vorrq_u32(magnitude, quiet));
  const uint32x4_t sign = vandq_u32(bits, vdupq_n_u32(0x80000000));
  return vshrn_n_u32(vorrq_u32(rounded, sign), 16);
}
// Finite values are limited to the largest half-precision number, whose rounding is then exact.
LANES_INLINE uint16x4_t four_f16(float32x4_t x) {
  const uint32x4_t sign = vdupq_n_u32(0x80000000);
  const float32x4_t magnitude = vabsq_f32(x);
  const float32x4_t limited = vbslq_f32(sign, x, vminq_f32(magnitude, vdupq_n_f32(65504.0f)));
  const uint32x4_t is_finite = vcltq_f32(magnitude, vdupq_n_f32(__builtin_inff()));
  return vreinterpret_u16_f16(vcvt_f16_f32(vbslq_f32(is_finite, limited, x)));
}
LANES_INLINE void store_rounded(BF16* to, F32x16 x) {
  for (int i = 0; i < 4; ++i) vst1_u16(&to[4 * i].bits, four_bf16(x.v[i]));
}
LANES_INLINE void store_rounded(F16* to, F32x16 x) {
  for (int i = 0; i < 4; ++i) vst1_u16(&to[4 * i].bits, four_f16(x.v[i]));
}

template <class Operation>
LANES_INLINE F32x16 for_fours(Operation operation) {
  return {{operation(0), operation(1), operation(2), operation(3)}};
}

LANES_INLINE F32x16 fma(F32x16 a, F32x16 b, F32x16 c) {
  return {{vfmaq_f32(c.v[0], a.v[0], b.v[0]), vfmaq_f32(c.v[1], a.v[1], b.v[1]),
           vfmaq_f32(c.v[2], a.v[2], b.v[2]), vfmaq_f32(c.v[3], a.v[3], b.v[3])}};
}
LANES_INLINE F32x16 add(F32x16 a, F32x16 b) {
  return for_fours([&](int i) { return vaddq_f32(a.v[i], b.v[i]); });
}
LANES_INLINE F32x16 sub(F32x16 a, F32x16 b) {
  return for_fours([&](int i) { return vsubq_f32(a.v[i], b.v[i]); });
}
LANES_INLINE F32x16 mul(F32x16 a, F32x16 b) {
  return for_fours([&](int i) { return vmulq_f32(a.v[i], b.v[i]); });
}
LANES_INLINE F32x16 div(F32x16 a, F32x16 b) {
  return for_fours([&](int i) { return vdivq_f32(a.v[i], b.v[i]); });
}
LANES_INLINE F32x16 sqrt(F32x16 a) {
  return for_fours([&](int i) { return vsqrtq_f32(a.v[i]); });
}

// Not vmaxq_f32, which treats NaN and the sign of zero differently from the vocabulary.
LANES_INLINE float32x4_t max(float32x4_t a, float32x4_t b) {
  return vbslq_f32(vcgtq_f32(a, b), a, b);
}
LANES_INLINE F32x16 max(F32x16 a, F32x16 b) {
  return for_fours([&](int i) { return max(a.v[i], b.v[i]); });
}

LANES_INLINE F32x16 select_less(F32x16 a, F32x16 b, F32x16 x, F32x16 y) {
  return for_fours([&](int i) { return vbslq_f32(vcltq_f32(a.v[i], b.v[i]), x.v[i], y.v[i]); });
}

LANES_INLINE F32x16 select_first(int count, F32x16 x, F32x16 y) {
  const int32_t first[4] = {0, 1, 2, 3};
  const int32x4_t index = vld1q_s32(first);
  return for_fours([&](int i) {
    return vbslq_f32(vcltq_s32(index, vdupq_n_s32(count - 4 * i)), x.v[i], y.v[i]);
  });
}

LANES_INLINE F32x16 add_exponent(F32x16 x, F32x16 shifted) {
  return for_fours([&](int i) {
    const uint32x4_t exponent = vshlq_n_u32(vreinterpretq_u32_f32(shifted.v[i]), 23);
    return vreinterpretq_f32_u32(vaddq_u32(vreinterpretq_u32_f32(x.v[i]), exponent));
  });
}

LANES_INLINE float first_lane(F32x16 x) {
  return vgetq_lane_f32(x.v[0], 0);
}

LANES_INLINE float sum_lanes(F32x16 x) {
  const float32x4_t four = vaddq_f32(vaddq_f32(x.v[0], x.v[2]), vaddq_f32(x.v[1], x.v[3]));
  const float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
  return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}

LANES_INLINE float max_lanes(F32x16 x) {
  const float32x4_t four = max(max(x.v[0], x.v[2]), max(x.v[1], x.v[3]));
  const float32x2_t low = vget_low_f32(four), high = vget_high_f32(four);
  const float32x2_t two = vbsl_f32(vcgt_f32(low, high), low, high);
  const float a = vget_lane_f32(two, 0), b = vget_lane_f32(two, 1);
  return a > b ? a : b;
}
