// The lane vocabulary in plain C++: the reference that every other simd_*.inl equals bit for bit.
// Included into the anonymous namespace of one file. kernels/math.cc computes with Lanes<1>.
//
// Rules for all vocabularies: max(a, b) is a > b ? a : b; sum_lanes adds lane i and i + 8, then i +
// 4, i + 2, i + 1; no operation flushes subnormal numbers; 16-bit floats convert exactly to float32
// and are rounded from it as to_f16 and to_bf16 do.

#define LANES_INLINE inline __attribute__((always_inline))

struct F16 {
  uint16_t bits;
};
struct BF16 {
  uint16_t bits;
};

LANES_INLINE float float_of_bits(uint32_t bits) {
  float value;
  __builtin_memcpy(&value, &bits, sizeof(value));
  return value;
}

LANES_INLINE uint32_t bits_of_float(float value) {
  uint32_t bits;
  __builtin_memcpy(&bits, &value, sizeof(bits));
  return bits;
}

LANES_INLINE float to_float(float value) {
  return value;
}
LANES_INLINE float to_float(BF16 value) {
  return float_of_bits(uint32_t{value.bits} << 16);
}

LANES_INLINE float to_float(F16 value) {
  const uint32_t sign = uint32_t{value.bits & 0x8000u} << 16;
  const uint32_t magnitude = value.bits & 0x7fffu;
  if (magnitude < 0x0400) {  // zero or subnormal: a multiple of 2^-24, exact in a float
    return float_of_bits(sign | bits_of_float(static_cast<float>(magnitude) * 0x1p-24f));
  }
  if (magnitude < 0x7c00) return float_of_bits(sign | ((magnitude << 13) + (112u << 23)));
  const uint32_t quiet = magnitude > 0x7c00 ? 0x00400000u : 0u;
  return float_of_bits(sign | 0x7f800000u | (magnitude << 13) | quiet);
}

// The nearest 16-bit float, ties to even, in integers alone. A finite value stays finite: beyond
// the largest it becomes the largest. A NaN becomes quiet and keeps its sign and the first bits of
// its fraction.
LANES_INLINE BF16 to_bf16(float value) {
  const uint32_t bits = bits_of_float(value);
  const uint32_t magnitude = bits & 0x7fffffffu;
  const uint32_t sign = (bits >> 16) & 0x8000u;
  uint32_t half = (magnitude + 0x7fffu + ((magnitude >> 16) & 1u)) >> 16;
  if (magnitude < 0x7f800000u && half > 0x7f7fu) half = 0x7f7fu;
  if (magnitude > 0x7f800000u) half = (magnitude >> 16) | 0x40u;
  return {static_cast<uint16_t>(sign | half)};
}
LANES_INLINE F16 to_f16(float value) {
  constexpr uint32_t kNormalLeast = 0x38800000u;  // 2^-14
  constexpr uint32_t kHalfOfLeast = 0x33000000u;  // 2^-25
  const uint32_t bits = bits_of_float(value);
  const uint32_t magnitude = bits & 0x7fffffffu;
  const uint32_t sign = (bits >> 16) & 0x8000u;
  uint32_t half = 0;
  if (magnitude > 0x7f800000u) {
    half = 0x7e00u | ((magnitude >> 13) & 0x3ffu);
  } else if (magnitude == 0x7f800000u) {
    half = 0x7c00u;
  } else if (magnitude >= kNormalLeast) {
    half = (magnitude - (112u << 23) + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
    if (half > 0x7bffu) half = 0x7bffu;
  } else if (magnitude > kHalfOfLeast) {  // a multiple of 2^-24
    const uint32_t significand = (magnitude & 0x7fffffu) | 0x800000u;
    const uint32_t shift = 126u - (magnitude >> 23);
    half = (significand + (1u << (shift - 1)) - 1u + ((significand >> shift) & 1u)) >> shift;
  }
  return {static_cast<uint16_t>(sign | half)};
}

// E4M3 / 256: a half precision number has the same fields, with the exponent one bit wider and its
// bias 8 larger, subnormal numbers included.
LANES_INLINE F16 half_of_fp8(uint8_t bits) {
  return {static_cast<uint16_t>(((bits & 0x80u) << 8) | ((bits & 0x7fu) << 7))};
}

template <int Count>
struct Lanes {
  float lane[Count];

  static LANES_INLINE Lanes broadcast(float value) {
    Lanes r;
    for (int i = 0; i < Count; ++i) r.lane[i] = value;
    return r;
  }

  // `from` need not be aligned.
  template <class Element>
  static LANES_INLINE Lanes load(const Element* from) {
    Element elements[Count];
    __builtin_memcpy(elements, from, sizeof(elements));
    Lanes r;
    for (int i = 0; i < Count; ++i) r.lane[i] = to_float(elements[i]);
    return r;
  }

  // The first `count` lanes from memory, zero in the others; no memory beyond them is read.
  static LANES_INLINE Lanes load_partial(const float* from, int count) {
    Lanes r;
    for (int i = 0; i < Count; ++i) r.lane[i] = i < count ? from[i] : 0.0f;
    return r;
  }
};

template <int Count>
LANES_INLINE void store(float* to, Lanes<Count> x) {
  for (int i = 0; i < Count; ++i) to[i] = x.lane[i];
}

template <int Count>
LANES_INLINE void store_partial(float* to, Lanes<Count> x, int count) {
  for (int i = 0; i < Count; ++i) {
    if (i < count) to[i] = x.lane[i];
  }
}

// Sixteen elements rounded as to_bf16 and to_f16 do.
template <int Count>
LANES_INLINE void store_rounded(BF16* to, Lanes<Count> x) {
  for (int i = 0; i < Count; ++i) to[i] = to_bf16(x.lane[i]);
}
template <int Count>
LANES_INLINE void store_rounded(F16* to, Lanes<Count> x) {
  for (int i = 0; i < Count; ++i) to[i] = to_f16(x.lane[i]);
}

// a * b + c, rounded once.
template <int Count>
LANES_INLINE Lanes<Count> fma(Lanes<Count> a, Lanes<Count> b, Lanes<Count> c) {
  for (int i = 0; i < Count; ++i) c.lane[i] = __builtin_fmaf(a.lane[i], b.lane[i], c.lane[i]);
  return c;
}

template <int Count>
LANES_INLINE Lanes<Count> add(Lanes<Count> a, Lanes<Count> b) {
  for (int i = 0; i < Count; ++i) a.lane[i] += b.lane[i];
  return a;
}

template <int Count>
LANES_INLINE Lanes<Count> sub(Lanes<Count> a, Lanes<Count> b) {
  for (int i = 0; i < Count; ++i) a.lane[i] -= b.lane[i];
  return a;
}

template <int Count>
LANES_INLINE Lanes<Count> mul(Lanes<Count> a, Lanes<Count> b) {
  for (int i = 0; i < Count; ++i) a.lane[i] *= b.lane[i];
  return a;
}

template <int Count>
LANES_INLINE Lanes<Count> div(Lanes<Count> a, Lanes<Count> b) {
  for (int i = 0; i < Count; ++i) a.lane[i] /= b.lane[i];
  return a;
}

template <int Count>
LANES_INLINE Lanes<Count> max(Lanes<Count> a, Lanes<Count> b) {
  for (int i = 0; i < Count; ++i) a.lane[i] = a.lane[i] > b.lane[i] ? a.lane[i] : b.lane[i];
  return a;
}

template <int Count>
LANES_INLINE Lanes<Count> sqrt(Lanes<Count> a) {
  for (int i = 0; i < Count; ++i) a.lane[i] = __builtin_sqrtf(a.lane[i]);
  return a;
}

// a < b ? x : y in each lane; y if unordered.
template <int Count>
LANES_INLINE Lanes<Count> select_less(Lanes<Count> a, Lanes<Count> b, Lanes<Count> x,
                                      Lanes<Count> y) {
  for (int i = 0; i < Count; ++i) y.lane[i] = a.lane[i] < b.lane[i] ? x.lane[i] : y.lane[i];
  return y;
}

// x in the first `count` lanes, y in the others.
template <int Count>
LANES_INLINE Lanes<Count> select_first(int count, Lanes<Count> x, Lanes<Count> y) {
  for (int i = 0; i < Count; ++i) y.lane[i] = i < count ? x.lane[i] : y.lane[i];
  return y;
}

// x * 2^n, where n is in the lowest bits of `shifted`'s representation; x and the result must be
// normal.
template <int Count>
LANES_INLINE Lanes<Count> add_exponent(Lanes<Count> x, Lanes<Count> shifted) {
  for (int i = 0; i < Count; ++i) {
    x.lane[i] = float_of_bits(bits_of_float(x.lane[i]) + (bits_of_float(shifted.lane[i]) << 23));
  }
  return x;
}

template <int Count>
LANES_INLINE float first_lane(Lanes<Count> x) {
  return x.lane[0];
}

template <int Count>
LANES_INLINE float sum_lanes(Lanes<Count> x) {
  for (int half = Count / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) x.lane[i] += x.lane[i + half];
  }
  return x.lane[0];
}

template <int Count>
LANES_INLINE float max_lanes(Lanes<Count> x) {
  for (int half = Count / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) {
      x.lane[i] = x.lane[i] > x.lane[i + half] ? x.lane[i] : x.lane[i + half];
    }
  }
  return x.lane[0];
}
