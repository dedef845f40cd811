// A request's options for choosing tokens. Plain data, shared by engine, node and server.
#pragma once

#include <cstdint>

namespace lockstep {

// Temperatures below this count as 0: the likeliest token is then certain in any float format, and
// dividing by much less would overflow.
inline constexpr float kTemperatureMin = 1e-6f;

struct SamplingOptions {
  float temperature = 0.0f;  // below kTemperatureMin: 0, which is greedy
  int32_t top_k = 0;         // 0: all
  float top_p = 1.0f;        // 1: all
  uint64_t seed = 0;

  float min_p = 0.0f;      // fraction of the likeliest token's probability; 0: all
  float typical_p = 1.0f;  // 1: all

  // For earlier tokens: repetition_penalty divides positive logits and multiplies negative ones,
  // for the last `penalty_tokens` of prompt and answer; the others are subtracted for tokens of the
  // answer, presence_penalty once, frequency_penalty for each occurrence.
  float repetition_penalty = 1.0f;
  int32_t penalty_tokens = -1;  // -1: all
  float presence_penalty = 0.0f;
  float frequency_penalty = 0.0f;

  // DRY: a token that would extend a repetition of `dry_allowed_length` tokens or more loses
  // dry_multiplier * dry_base ^ (length - dry_allowed_length).
  float dry_multiplier = 0.0f;  // 0: off
  float dry_base = 1.75f;
  int32_t dry_allowed_length = 2;
  int32_t dry_tokens = -1;  // how far back to look for repetitions; -1: all

  friend bool operator==(const SamplingOptions&, const SamplingOptions&) = default;

  // The likeliest token is the choice, without noise.
  bool is_greedy() const { return !(temperature >= kTemperatureMin); }
};

// Added to one token's logit.
struct LogitBias {
  int32_t token = 0;
  float bias = 0.0f;
};

}  // namespace lockstep
