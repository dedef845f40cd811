// Operations between the matrices: norm, rotary positions, activation, residual sums.

// The sum of products: column c in lane c % kNormLanes, the lanes added in a tree, halves first.
LANES_INLINE float sum_of_products(const float* x, const float* y, int columns) {
  constexpr int kGroupsOfLanes = kNormLanes / kLanes;
  F32x16 sums[kGroupsOfLanes];
#pragma GCC unroll 8
  for (int g = 0; g < kGroupsOfLanes; ++g) sums[g] = F32x16::broadcast(0.0f);
  int i = 0;
  for (; i + kNormLanes <= columns; i += kNormLanes) {
#pragma GCC unroll 8
    for (int g = 0; g < kGroupsOfLanes; ++g) {
      const int at = i + g * kLanes;
      sums[g] = fma(F32x16::load(x + at), F32x16::load(y + at), sums[g]);
    }
  }
#pragma GCC unroll 8
  for (int g = 0; g < kGroupsOfLanes; ++g) {
    const int at = i + g * kLanes, rest = columns - at;
    if (rest <= 0) break;
    sums[g] = fma(load_lanes(x + at, rest), load_lanes(y + at, rest), sums[g]);
  }
#pragma GCC unroll 3
  for (int half = kGroupsOfLanes / 2; half > 0; half /= 2) {
#pragma GCC unroll 4
    for (int g = 0; g < half; ++g) sums[g] = add(sums[g], sums[g + half]);
  }
  return sum_lanes(sums[0]);
}

// 1 / sqrt(mean(x * x) + epsilon).
LANES_INLINE F32x16 inverse_rms(const float* x, int columns, float epsilon) {
  const float mean = sum_of_products(x, x, columns) / static_cast<float>(columns);
  return div(F32x16::broadcast(1.0f), sqrt(F32x16::broadcast(mean + epsilon)));
}

void rms_norm(const RmsNormArgs& args) {
  for (int token = args.token_begin; token < args.token_end; ++token) {
    const float* x = args.x + static_cast<size_t>(token) * args.x_stride;
    float* y = args.y + static_cast<size_t>(token) * args.y_stride;
    const float* weight =
        args.weight + static_cast<size_t>(token % args.weights) * static_cast<size_t>(args.columns);
    const F32x16 scale = inverse_rms(x, args.columns, args.epsilon);
    int i = 0;
    for (; i + kLanes <= args.columns; i += kLanes) {
      store(y + i, mul(mul(F32x16::load(x + i), scale), F32x16::load(weight + i)));
    }
    const int rest = args.columns - i;
    if (rest > 0) {
      const F32x16 last = F32x16::load_partial(weight + i, rest);
      store_partial(y + i, mul(mul(F32x16::load_partial(x + i, rest), scale), last), rest);
    }
  }
}

struct Rotated {
  F32x16 first;
  F32x16 second;
};

LANES_INLINE Rotated rotate(F32x16 first, F32x16 second, F32x16 cosine, F32x16 sine) {
  return {sub(mul(first, cosine), mul(second, sine)), add(mul(second, cosine), mul(first, sine))};
}

LANES_INLINE void rope_head(float* x, int half, const float* cosine, const float* sine) {
  int i = 0;
  for (; i + kLanes <= half; i += kLanes) {
    const Rotated r = rotate(F32x16::load(x + i), F32x16::load(x + half + i),
                             F32x16::load(cosine + i), F32x16::load(sine + i));
    store(x + i, r.first);
    store(x + half + i, r.second);
  }
  const int rest = half - i;
  if (rest > 0) {
    const Rotated r =
        rotate(F32x16::load_partial(x + i, rest), F32x16::load_partial(x + half + i, rest),
               F32x16::load_partial(cosine + i, rest), F32x16::load_partial(sine + i, rest));
    store_partial(x + i, r.first, rest);
    store_partial(x + half + i, r.second, rest);
  }
}

void rope(const RopeArgs& args) {
  for (int token = args.token_begin; token < args.token_end; ++token) {
    const float* cosine = args.table + static_cast<size_t>(token) * 2 * args.half;
    float* x = args.x + static_cast<size_t>(token) * args.x_stride;
    for (int head = 0; head < args.heads; ++head) {
      rope_head(x + static_cast<size_t>(head) * args.head_dim, args.half, cosine,
                cosine + args.half);
    }
  }
}

LANES_INLINE F32x16 silu_mul_lanes(F32x16 gate, F32x16 up) {
  return mul(mul(gate, sigmoid_lanes(gate)), up);
}

void silu_mul(const float* gate, const float* up, float* out, size_t count) {
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    store(out + i, silu_mul_lanes(F32x16::load(gate + i), F32x16::load(up + i)));
  }
  const int rest = static_cast<int>(count - i);
  if (rest > 0) {
    const F32x16 g = F32x16::load_partial(gate + i, rest);
    store_partial(out + i, silu_mul_lanes(g, F32x16::load_partial(up + i, rest)), rest);
  }
}

LANES_INLINE F32x16 clamped_swiglu_lanes(F32x16 gate, F32x16 up, float limit) {
  const F32x16 most = F32x16::broadcast(limit), least = F32x16::broadcast(-limit);
  gate = select_less(most, gate, most, gate);
  up = select_less(most, up, most, up);
  up = select_less(up, least, least, up);
  const F32x16 opened = sigmoid_lanes(mul(F32x16::broadcast(1.702f), gate));
  return mul(add(up, F32x16::broadcast(1.0f)), mul(gate, opened));
}

void clamped_swiglu(const float* gate, const float* up, float limit, float* out, size_t count) {
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    store(out + i, clamped_swiglu_lanes(F32x16::load(gate + i), F32x16::load(up + i), limit));
  }
  const int rest = static_cast<int>(count - i);
  if (rest > 0) {
    const F32x16 g = F32x16::load_partial(gate + i, rest);
    const F32x16 u = F32x16::load_partial(up + i, rest);
    store_partial(out + i, clamped_swiglu_lanes(g, u, limit), rest);
  }
}

void add_to(const float* x, float* sum, size_t count) {
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    store(sum + i, add(F32x16::load(sum + i), F32x16::load(x + i)));
  }
  const int rest = static_cast<int>(count - i);
  if (rest > 0) {
    const F32x16 s = add(F32x16::load_partial(sum + i, rest), F32x16::load_partial(x + i, rest));
    store_partial(sum + i, s, rest);
  }
}
