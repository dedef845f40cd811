// A head of one token: its state while pages are taken in ascending order
// (kernels/generic/attention.inl), and the end of it. The includer has AttentionParams as PARAMS and
// a workgroup of kGroupSize invocations, each with some columns of the values.
const uint kStagedBlocks = 16u;
#include "prepare.glsl"

// The form of the blocks that are also made of the result, which are all of kColumnsOfBlock columns;
// plain: none.
layout(constant_id = 13) const uint kForm = kPlainInput;

const uint kColumnsMax = kStagedBlocks * kColumnsOfBlock / kGroupSize;  // of values, each invocation

#define kLeast of_bits(0xff800000u)

// The softmax so far: its maximum and the sum of exp(score - maximum).
struct HeadState {
  float maximum;
  float sum;
};
// The factors of earlier values and of new ones.
struct Factors {
  float before;
  float added;
};
// One of the two factors is exp(0) = 1.
Factors factors_of(float maximum_before, float maximum) {
  const bool is_larger = maximum > maximum_before;
  const float distance = is_larger ? exact_sub(maximum_before, maximum)
                                   : exact_sub(maximum, maximum_before);
  const float smaller = exact_exp(distance);
  return Factors(is_larger ? smaller : 1.0, is_larger ? 1.0 : smaller);
}

// A row's pages, of which those before the window do not count.
struct PageRange {
  uint start;  // the first position that counts
  uint first;
  uint end;
};
PageRange pages_of(uint position) {
  const bool has_start = PARAMS.window > 0u && PARAMS.window <= position;
  const uint start = has_start ? position + 1u - PARAMS.window : 0u;
  return PageRange(start, start / kPositionsOfPage, position / kPositionsOfPage + 1u);
}

// Where a page's part of a row is between two dispatches: value_dim columns, its maximum, its sum.
uvec2 place_of_part(uint row, uint page) {
  const uint bytes = (PARAMS.pages.value_dim + 2u) * 4u;
  return advance(advance(PARAMS.parts, row, PARAMS.parts_pages * bytes), page, bytes);
}

// Between dispatches that take some of the pages each, the state and the columns of a row stay.
void resume_head(uint lane, uint row, out HeadState state, out float outputs[kColumnsMax]) {
  const uint value_dim = PARAMS.pages.value_dim;
  Floats from = Floats(advance(PARAMS.outputs, row, value_dim * 4u));
  Floats kept = Floats(advance(PARAMS.parts, row, 8u));
  state = HeadState(kept.at[0], kept.at[1]);
  for (uint i = 0u; i * kGroupSize + lane < value_dim; ++i) {
    outputs[i] = from.at[i * kGroupSize + lane];
  }
}
void leave_head(uint lane, uint row, HeadState state, float outputs[kColumnsMax]) {
  const uint value_dim = PARAMS.pages.value_dim;
  Floats to = Floats(advance(PARAMS.outputs, row, value_dim * 4u));
  Floats kept = Floats(advance(PARAMS.parts, row, 8u));
  if (lane == 0u) {
    kept.at[0] = state.maximum;
    kept.at[1] = state.sum;
  }
  for (uint i = 0u; i * kGroupSize + lane < value_dim; ++i) {
    to.at[i * kGroupSize + lane] = outputs[i];
  }
}

// After the last page: the sink, then the division.
void end_head(uint lane, uint row, uint head, HeadState state, float outputs[kColumnsMax]) {
  const uint value_dim = PARAMS.pages.value_dim;
  Floats to = Floats(advance(PARAMS.outputs, row, value_dim * 4u));
  float factor = 1.0;
  if (!is_none(PARAMS.sinks)) {
    const Factors by = factors_of(state.maximum, Floats(PARAMS.sinks).at[head]);
    state.sum = exact_add(exact_mul(state.sum, by.before), by.added);
    factor = by.before;
  }
  for (uint i = 0u; i < kColumnsMax; ++i) {
    const uint column = i * kGroupSize + lane;
    if (column >= value_dim) break;
    const float value = exact_div(exact_mul(outputs[i], factor), state.sum);
    to.at[column] = value;
    if (kForm != kPlainInput) staged[staged_at(column)] = value;
  }
  if (kForm == kPlainInput) return;
  barrier();
  const uint blocks = value_dim / kColumnsOfBlock;
  if (lane < blocks) {
    prepare_staged(kForm, lane * kColumnsOfBlock, kColumnsOfBlock, PARAMS.prepared.blocks,
                   row * blocks + lane);
  }
}
