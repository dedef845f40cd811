// Layers that keep a state instead of keys and values: short convolutions and the delta rule.

LANES_INLINE F32x16 decay_lanes(F32x16 x, F32x16 bias, F32x16 rate) {
  return exp_lanes(sub(F32x16::broadcast(0.0f), mul(rate, softplus_lanes(add(x, bias)))));
}

void decay(const float* bias, const float* rate, float* x, size_t count) {
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    store(x + i, decay_lanes(F32x16::load(x + i), F32x16::load(bias + i), F32x16::load(rate + i)));
  }
  const int rest = static_cast<int>(count - i);
  if (rest > 0) {
    const F32x16 y =
        decay_lanes(F32x16::load_partial(x + i, rest), F32x16::load_partial(bias + i, rest),
                    F32x16::load_partial(rate + i, rest));
    store_partial(x + i, y, rest);
  }
}

LANES_INLINE F32x16 bounded_decay_lanes(F32x16 x, F32x16 bias, F32x16 rate, F32x16 least) {
  return exp_lanes(mul(least, sigmoid_lanes(mul(rate, add(x, bias)))));
}

void bounded_decay(const float* bias, const float* rate, float least, float* x, size_t count) {
  const F32x16 smallest = F32x16::broadcast(least);
  for (size_t i = 0; i < count; i += kLanes) {
    const int rest = static_cast<int>(count - i);
    const F32x16 y = bounded_decay_lanes(load_lanes(x + i, rest), load_lanes(bias + i, rest),
                                         load_lanes(rate + i, rest), smallest);
    store_lanes(x + i, y, rest);
  }
}

void sigmoid(const float* x, float* y, size_t count) {
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) store(y + i, sigmoid_lanes(F32x16::load(x + i)));
  const int rest = static_cast<int>(count - i);
  if (rest > 0) store_partial(y + i, sigmoid_lanes(F32x16::load_partial(x + i, rest)), rest);
}

void silu(float* x, size_t count) {
  for (size_t i = 0; i < count; i += kLanes) {
    const int rest = static_cast<int>(count - i);
    const F32x16 value = load_lanes(x + i, rest);
    store_lanes(x + i, mul(value, sigmoid_lanes(value)), rest);
  }
}

void convolve(const ConvolveArgs& args) {
  const int past = (args.taps - 1) * args.dilation;
  for (int c = 0; c < args.channels; c += kLanes) {
    const int count = args.channels - c;
    F32x16 sum = F32x16::broadcast(0.0f);
    const float* weight = args.weights + c;
    for (int place = 0, next = 0; place <= past; ++place) {
      const size_t row = static_cast<size_t>(place) * args.stride + static_cast<size_t>(c);
      F32x16 x = F32x16::broadcast(0.0f);
      if (place == past) {
        x = load_lanes(args.x + c, count);
      } else if (args.before != nullptr) {
        x = load_lanes(args.before + row, count);
      }
      if (place == next) {
        sum = fma(load_lanes(weight, count), x, sum);
        weight += args.stride;
        next += args.dilation;
      }
      // `after` may be `before`: an input moves on once it has been read.
      if (place > 0) store_lanes(args.after + row - args.stride, x, count);
    }
    store_lanes(args.y + c, mul(sum, sigmoid_lanes(sum)), count);
  }
}

// `Count` vectors of columns, of which the last one has `rest` columns.
template <int Count>
LANES_INLINE void delta_columns(const DeltaArgs& args, int column, int rest) {
  const auto stride = static_cast<size_t>(args.value_dim);
  const auto of_last = [&](int g) { return g + 1 == Count ? rest : kLanes; };
  const auto decayed = [&](int row, int g) {
    const float* from = args.before + static_cast<size_t>(row) * stride + column + g * kLanes;
    const F32x16 factor = F32x16::broadcast(args.decay[row * args.decay_stride]);
    return mul(load_lanes(from, of_last(g)), factor);
  };
  const F32x16 zero = F32x16::broadcast(0.0f), rate = F32x16::broadcast(args.rate);
  F32x16 change[Count], output[Count];
#pragma GCC unroll 4
  for (int g = 0; g < Count; ++g) change[g] = output[g] = zero;
  for (int row = 0; args.before != nullptr && row < args.key_dim; ++row) {
    const F32x16 key = F32x16::broadcast(args.key[row]);
#pragma GCC unroll 4
    for (int g = 0; g < Count; ++g) change[g] = fma(decayed(row, g), key, change[g]);
  }
#pragma GCC unroll 4
  for (int g = 0; g < Count; ++g) {
    const F32x16 value = load_lanes(args.value + column + g * kLanes, of_last(g));
    change[g] = mul(sub(value, change[g]), rate);
  }
  for (int row = 0; row < args.key_dim; ++row) {
    const F32x16 key = F32x16::broadcast(args.key[row]);
    const F32x16 query = F32x16::broadcast(args.query[row]);
    float* to = args.after + static_cast<size_t>(row) * stride + column;
#pragma GCC unroll 4
    for (int g = 0; g < Count; ++g) {
      const F32x16 old = args.before != nullptr ? decayed(row, g) : zero;
      const F32x16 state = fma(key, change[g], old);
      store_lanes(to + g * kLanes, state, of_last(g));
      output[g] = fma(state, query, output[g]);
    }
  }
#pragma GCC unroll 4
  for (int g = 0; g < Count; ++g) {
    store_lanes(args.output + column + g * kLanes, output[g], of_last(g));
  }
}

// Four vectors at a time, so that the chains of additions do not wait for each other.
void delta_rule(const DeltaArgs& args) {
  constexpr int kVectors = 4;
  int column = 0;
  for (; column + kVectors * kLanes <= args.value_dim; column += kVectors * kLanes) {
    delta_columns<kVectors>(args, column, kLanes);
  }
  for (; column < args.value_dim; column += kLanes) {
    const int rest = args.value_dim - column;
    delta_columns<1>(args, column, rest < kLanes ? rest : kLanes);
  }
}
