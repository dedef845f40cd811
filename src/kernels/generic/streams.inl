// Several residual streams of a token: sums over them, their changes, and what they match.

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

void inject_streams(const float* x, const float* post, int32_t count, size_t columns,
                    float* streams, size_t stride) {
  for (size_t i = 0; i < columns; i += kLanes) {
    const int rest = static_cast<int>(columns - i);
    const F32x16 added = load_lanes(x + i, rest);
    for (int s = 0; s < count; ++s) {
      float* stream = streams + static_cast<size_t>(s) * stride + i;
      store_lanes(stream, fma(F32x16::broadcast(post[s]), added, load_lanes(stream, rest)), rest);
    }
  }
}

void match_stream(const float* key, const float* query, const float* value, int32_t columns,
                  float* output) {
  const F32x16 zero = F32x16::broadcast(0.0f), least = F32x16::broadcast(1e-6f);
  const F32x16 sum = F32x16::broadcast(sum_of_products(key, query, columns));
  const F32x16 g = div(sum, sqrt(F32x16::broadcast(static_cast<float>(columns))));
  const F32x16 size = select_less(g, zero, sub(zero, g), g);
  F32x16 root = sqrt(select_less(size, least, least, size));
  root = select_less(g, zero, sub(zero, root), root);
  root = select_less(size, F32x16::broadcast(0x1p-126f), zero, root);
  const F32x16 opened = sigmoid_lanes(root);
  for (int i = 0; i < columns; i += kLanes) {
    const int rest = columns - i;
    store_lanes(output + i, mul(opened, load_lanes(value + i, rest)), rest);
  }
}
