// Several residual streams of a token: sums over them, and their changes.

void collapse_streams(const float* streams, size_t stride, const float* weights, int32_t count,
                      size_t columns, float* y) {
  for (size_t i = 0; i < columns; i += kLanes) {
    const int rest = static_cast<int>(columns - i);
    F32x16 sum = F32x16::broadcast(0.0f);
    for (int s = 0; s < count; ++s) {
      const F32x16 x = load_lanes(streams + static_cast<size_t>(s) * stride + i, rest);
      sum = fma(F32x16::broadcast(weights[s]), x, sum);
    }
    store_lanes(y + i, sum, rest);
  }
}

void update_streams(const float* x, const float* post, const float* mix, int32_t count,
                    size_t columns, float* streams, size_t stride) {
  F32x16 old[kResidualStreamsMax];
  for (size_t i = 0; i < columns; i += kLanes) {
    const int rest = static_cast<int>(columns - i);
    for (int s = 0; s < count; ++s) {
      old[s] = load_lanes(streams + static_cast<size_t>(s) * stride + i, rest);
    }
    const F32x16 added = load_lanes(x + i, rest);
    for (int to = 0; to < count; ++to) {
      F32x16 sum = mul(F32x16::broadcast(post[to]), added);
      for (int from = 0; from < count; ++from) {
        sum = fma(F32x16::broadcast(mix[from * count + to]), old[from], sum);
      }
      store_lanes(streams + static_cast<size_t>(to) * stride + i, sum, rest);
    }
  }
}
