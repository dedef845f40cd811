#version 450
#extension GL_GOOGLE_include_directive : require
// The parts that attention.comp has left of each page, taken in ascending order: the end of attention
// of one token and head.
#include "common.glsl"

layout(local_size_x = 64) in;
PARAMETERS(AttentionParams)
#include "attention.glsl"

// Some pages; those of the invocation with the same number.
shared float maxima[kGroupSize];
shared float sums[kGroupSize];
shared float maxima_before[kGroupSize];
shared Factors factors[kGroupSize];

void main() {
  const uint lane = gl_LocalInvocationIndex, head = gl_WorkGroupID.x, token = gl_WorkGroupID.y;
  const uint value_dim = PARAMS.pages.value_dim, row = token * PARAMS.heads + head;
  const PageRange range = pages_of(uint(Ints(PARAMS.positions).at[token]));
  const uint pages = range.end - range.first;
  float outputs[kColumnsMax];
  [[unroll]] for (uint i = 0u; i < kColumnsMax; ++i) outputs[i] = 0.0;
  HeadState state = HeadState(0.0, 0.0);
  for (uint begin = 0u; begin < pages; begin += kGroupSize) {
    const uint count = min(pages - begin, kGroupSize);
    if (lane < count) {
      Floats part = Floats(place_of_part(row, begin + lane));
      maxima[lane] = part.at[value_dim];
      sums[lane] = part.at[value_dim + 1u];
    }
    barrier();
    if (begin == 0u) state = HeadState(maxima[0], sums[0]);
    if (lane == 0u) {
      float maximum = state.maximum;
      for (uint i = 0u; i < count; ++i) {
        maxima_before[i] = maximum;
        if (maxima[i] > maximum) maximum = maxima[i];
      }
      maxima[0] = maximum;  // so far
    }
    barrier();
    // The first one's is not used below, and maxima[0] has changed.
    if (lane < count) {
      const float own = lane == 0u ? Floats(place_of_part(row, begin)).at[value_dim] : maxima[lane];
      factors[lane] = factors_of(maxima_before[lane], own);
    }
    barrier();
    for (uint i = begin == 0u ? 1u : 0u; i < count; ++i) {
      state.sum = exact_add(exact_mul(state.sum, factors[i].before),
                            exact_mul(sums[i], factors[i].added));
    }
    state.maximum = maxima[0];
    [[unroll]] for (uint i = 0u; i < kColumnsMax; ++i) {
      const uint column = i * kGroupSize + lane;
      if (column >= value_dim) break;
      uint page = 0u;
      if (begin == 0u) {
        outputs[i] = Floats(place_of_part(row, 0u)).at[column];
        page = 1u;
      }
      // Loads of eight pages are in flight together.
      for (; page < count; page += 8u) {
        float added[8];
        [[unroll]] for (uint k = 0u; k < 8u; ++k) {
          added[k] = Floats(place_of_part(row, begin + min(page + k, count - 1u))).at[column];
        }
        [[unroll]] for (uint k = 0u; k < 8u; ++k) {
          if (page + k >= count) break;
          outputs[i] = exact_fma(outputs[i], factors[page + k].before,
                                 exact_mul(added[k], factors[page + k].added));
        }
      }
    }
    barrier();
  }
  end_head(lane, row, head, state, outputs);
}
