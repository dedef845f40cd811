// Chooses a token's experts. Plain code in a fixed order of operations, with our own exp.
#pragma once

#include <cstdint>

#include "device/router_form.h"

namespace lockstep {

struct RouterRule {
  int experts = 0;
  int chosen = 0;
  RouterForm form = RouterForm::kSoftmax;
  int groups = 1;  // the best `chosen_groups` by the sum of their two best experts
  int chosen_groups = 1;
  bool normalises = true;  // the chosen experts' weights sum to 1 before `factor`
  float factor = 1;
};

// `scores` (experts) of one token are overwritten. `bias` (experts) may be null; it affects only
// the choice. Writes `chosen` experts in ascending order and their weights; among equals the
// smaller number wins. `scales` (experts) may be null; they multiply the weights at the end.
// Source: DeepSeek-V3 technical report, section 2.1.2; Qwen3-MoE and Gemma 4 in Hugging Face
// transformers.
void choose_experts(const RouterRule& rule, float* scores, const float* bias, const float* scales,
                    int32_t* experts, float* weights);

// The same for experts that are given (Route::given), whatever their scores.
void weigh_experts(const RouterRule& rule, float* scores, const float* given, const float* scales,
                   int32_t* experts, float* weights);

}  // namespace lockstep
