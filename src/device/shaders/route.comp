#version 450
#extension GL_GOOGLE_include_directive : require
// Chooses the experts of one token: device/cpu/router.cc. Among equals the smaller number wins; a
// NaN is the worst.
#include "common.glsl"

layout(local_size_x = 64) in;
PARAMETERS(RouteParams)

shared float scores[kExpertsMax];
shared float values[kExpertsMax];  // by which experts are chosen
shared uint chosen[kExpertsMax];
shared float of_groups[kExpertsMax];
shared float divisor;

#define kLeast of_bits(0xff800000u)

void soften(uint lane, uint experts) {
  if (lane == 0u) {
    float largest = scores[0];
    for (uint i = 1u; i < experts; ++i) {
      if (largest < scores[i]) largest = scores[i];
    }
    divisor = largest;
  }
  barrier();
  const float largest = divisor;
  barrier();
  for (uint i = lane; i < experts; i += kGroupSize) {
    scores[i] = exact_exp(exact_sub(scores[i], largest));
  }
  barrier();
  if (lane == 0u) {
    float sum = 0.0;
    for (uint i = 0u; i < experts; ++i) sum = exact_add(sum, scores[i]);
    divisor = sum;
  }
  barrier();
  const float sum = divisor;
  for (uint i = lane; i < experts; i += kGroupSize) scores[i] = exact_div(scores[i], sum);
  barrier();
}

// The sum of a group's two best values.
float group_value(uint begin, uint end) {
  float best = kLeast, second = kLeast;
  for (uint i = begin; i < end; ++i) {
    const float value = values[i];
    if (value > best) {
      second = best;
      best = value;
    } else if (second < value) {
      second = value;
    }
  }
  return end - begin > 1u ? exact_add(best, second) : best;
}
bool is_group_chosen(uint group) {
  uint better = 0u;
  for (uint other = 0u; other < PARAMS.groups; ++other) {
    const float value = of_groups[other], own = of_groups[group];
    if (value > own || (value == own && other < group)) ++better;
  }
  return better < PARAMS.chosen_groups;
}

// Marks the chosen experts with 2.
void choose(uint lane, uint experts) {
  for (uint i = lane; i < experts; i += kGroupSize) {
    values[i] = is_none(PARAMS.bias) ? scores[i] : exact_add(scores[i], Floats(PARAMS.bias).at[i]);
  }
  barrier();
  const uint size = experts / PARAMS.groups;
  for (uint i = lane; i < PARAMS.groups; i += kGroupSize) {
    of_groups[i] = group_value(i * size, (i + 1u) * size);
  }
  barrier();
  for (uint i = lane; i < experts; i += kGroupSize) {
    chosen[i] = PARAMS.groups > 1u && !is_group_chosen(i / size) ? 0u : 1u;
    if (is_nan(values[i])) values[i] = kLeast;
  }
  barrier();
  for (uint i = lane; i < experts; i += kGroupSize) {
    uint better = 0u;
    for (uint other = 0u; other < experts; ++other) {
      const bool is_better = values[other] > values[i] || (values[other] == values[i] && other < i);
      if (is_better && (chosen[other] & 1u) != 0u) ++better;
    }
    if ((chosen[i] & 1u) != 0u && better < PARAMS.chosen_count) atomicOr(chosen[i], 2u);
  }
  barrier();
}

float formed(float score) {
  if (PARAMS.form == kScoresSigmoid) return exact_sigmoid(score);
  if (PARAMS.form == kScoresRootSoftplus) return exact_root_softplus(score);
  return score;
}

void main() {
  const uint lane = gl_LocalInvocationIndex, token = gl_WorkGroupID.x;
  const uint experts = PARAMS.experts, count = PARAMS.chosen_count;
  Floats from = Floats(advance(PARAMS.scores, token, experts * 4u));
  for (uint i = lane; i < experts; i += kGroupSize) {
    float score = from.at[i];
    if (!is_none(PARAMS.score_bias)) score = exact_add(score, Floats(PARAMS.score_bias).at[i]);
    scores[i] = formed(score);
  }
  barrier();
  if (PARAMS.form == kScoresSoftmax) soften(lane, experts);
  if (is_none(PARAMS.given)) choose(lane, experts);
  Ints to = Ints(advance(PARAMS.chosen, token, count * 4u));
  Floats weights = Floats(advance(PARAMS.weights, token, count * 4u));
  if (lane != 0u) return;
  uint slot = 0u;
  if (is_none(PARAMS.given)) {
    for (uint i = 0u; i < experts && slot < count; ++i) {
      if ((chosen[i] & 2u) != 0u) to.at[slot++] = int(i);
    }
  } else {
    Floats given = Floats(advance(PARAMS.given, token, count * 4u));
    for (; slot < count; ++slot) to.at[slot] = int(given.at[slot]);
  }
  float sum = 0.0;
  for (uint i = 0u; i < slot; ++i) sum = exact_add(sum, scores[to.at[i]]);
  for (uint i = 0u; i < slot; ++i) {
    const float weight = scores[to.at[i]];
    float scaled = exact_mul(PARAMS.normalises != 0u ? exact_div(weight, sum) : weight, PARAMS.factor);
    if (!is_none(PARAMS.scales)) scaled = exact_mul(scaled, Floats(PARAMS.scales).at[to.at[i]]);
    weights.at[i] = scaled;
  }
}
