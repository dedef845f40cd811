#version 450
#extension GL_GOOGLE_include_directive : require
// CollapseStreams, UpdateStreams and InjectStreams: kernels/generic/streams.inl. An invocation has
// one column of a token's streams.
#include "common.glsl"

layout(local_size_x = 64) in;
layout(constant_id = 12) const uint kStep = kCollapse;
PARAMETERS(StreamsParams)

void collapse(Floats weights, Floats streams, Floats y, uint column) {
  float sum = 0.0;
  for (uint s = 0u; s < PARAMS.count; ++s) {
    sum = exact_fma(weights.at[s], streams.at[s * PARAMS.columns + column], sum);
  }
  y.at[column] = sum;
}

// `post`: followed by the mix.
void update(Floats post, Floats streams, Floats x, uint column) {
  const uint count = PARAMS.count, columns = PARAMS.columns;
  float old[kMostStreams];
  [[unroll]] for (uint s = 0u; s < kMostStreams; ++s) {
    old[s] = s < count ? streams.at[s * columns + column] : 0.0;
  }
  const float added = x.at[column];
  for (uint to = 0u; to < count; ++to) {
    float sum = exact_mul(post.at[to], added);
    [[unroll]] for (uint from = 0u; from < kMostStreams; ++from) {
      if (from < count) sum = exact_fma(post.at[count + from * count + to], old[from], sum);
    }
    streams.at[to * columns + column] = sum;
  }
}

void inject(Floats gates, Floats streams, Floats x, uint column) {
  const float added = x.at[column];
  for (uint s = 0u; s < PARAMS.count; ++s) {
    const uint at = s * PARAMS.columns + column;
    const float opened = exact_mul(2.0, exact_sigmoid(gates.at[s]));
    streams.at[at] = exact_fma(opened, added, streams.at[at]);
  }
}

void main() {
  const uint column = gl_GlobalInvocationID.x, token = gl_WorkGroupID.y, columns = PARAMS.columns;
  if (column >= columns) return;
  Floats weights = Floats(advance(PARAMS.weights, token, PARAMS.weights_stride * 4u));
  Floats streams = Floats(advance(PARAMS.streams, token, PARAMS.count * columns * 4u));
  Floats x = Floats(advance(PARAMS.x, token, columns * 4u));
  if (kStep == kCollapse) {
    collapse(weights, streams, x, column);
  } else if (kStep == kInject) {
    inject(weights, streams, x, column);
  } else {
    update(weights, streams, x, column);
  }
}
