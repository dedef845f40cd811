// What a request may say about choosing tokens. Plain data, shared by engine, node and server.
#pragma once

#include <cstdint>

namespace lockstep {

struct SamplingOptions {
  float temperature = 0.0f;  // 0: greedy
  int32_t top_k = 0;         // 0: all
  float top_p = 1.0f;        // 1: all
  uint64_t seed = 0;

  float min_p = 0.0f;      // of the likeliest token's probability; 0: all
  float typical_p = 1.0f;  // 1: all

  // Of tokens that have come before: the first divides positive logits and multiplies negative
  // ones, for the last `penalty_tokens` of the prompt and the answer; the others are subtracted,
  // for tokens of the answer, once and for each time.
  float repetition_penalty = 1.0f;
  int32_t penalty_tokens = -1;  // -1: all
  float presence_penalty = 0.0f;
  float frequency_penalty = 0.0f;

  // DRY: a token that would prolong a repetition of `dry_allowed_length` tokens or more by one
  // loses dry_multiplier * dry_base ^ (length - dry_allowed_length).
  float dry_multiplier = 0.0f;  // 0: off
  float dry_base = 1.75f;
  int32_t dry_allowed_length = 2;
  int32_t dry_tokens = -1;  // how far back repetitions are looked for; -1: all
};

// Added to one token's logit.
struct LogitBias {
  int32_t token = 0;
  float bias = 0.0f;
};

}  // namespace lockstep
