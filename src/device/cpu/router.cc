#include "device/cpu/router.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "device/cpu/softmax.h"
#include "kernels/math.h"

namespace lockstep {
namespace {

constexpr float kLeast = -std::numeric_limits<float>::infinity();

// The value by which an expert is chosen.
float selection(const float* scores, const float* bias, int expert) {
  return bias ? scores[expert] + bias[expert] : scores[expert];
}

float group_value(const float* scores, const float* bias, int begin, int end) {
  float best = kLeast, second = kLeast;
  for (int expert = begin; expert < end; ++expert) {
    const float value = selection(scores, bias, expert);
    if (value > best) {
      second = best;
      best = value;
    } else {
      second = std::max(second, value);
    }
  }
  return end - begin > 1 ? best + second : best;
}

// True if fewer than `chosen_groups` are better; among equals the first is better.
bool is_group_chosen(const RouterRule& rule, const float* scores, const float* bias, int group) {
  const int size = rule.experts / rule.groups;
  const float own = group_value(scores, bias, group * size, (group + 1) * size);
  int better = 0;
  for (int other = 0; other < rule.groups; ++other) {
    const float value = group_value(scores, bias, other * size, (other + 1) * size);
    better += value > own || (value == own && other < group) ? 1 : 0;
  }
  return better < rule.chosen_groups;
}

// Keeps the best `most` experts offered so far, best first.
class BestExperts {
 public:
  BestExperts(int32_t* experts, float* values, int most)
      : experts_(experts), values_(values), most_(most) {}

  void offer(int expert, float value) {
    if (count_ == most_ && !(value > values_[count_ - 1])) return;
    int at = count_ < most_ ? count_++ : count_ - 1;
    for (; at > 0 && value > values_[at - 1]; --at) {
      values_[at] = values_[at - 1];
      experts_[at] = experts_[at - 1];
    }
    values_[at] = value;
    experts_[at] = expert;
  }

 private:
  int32_t* experts_;
  float* values_;
  int most_;
  int count_ = 0;
};

// 0 where softplus would divide into a subnormal number.
float root_softplus(float x) {
  return x < -86.0f ? 0.0f : std::sqrt(softplus_f32(x));
}

float form_alone(RouterForm form, float x) {
  return form == RouterForm::kSigmoid ? sigmoid_f32(x) : root_softplus(x);
}

void form_scores(const RouterRule& rule, float* scores) {
  if (rule.form == RouterForm::kSoftmax) return soften(scores, rule.experts);
  for (int i = 0; i < rule.experts; ++i) scores[i] = form_alone(rule.form, scores[i]);
}

// From the scores of the experts that are used, in the weights' places.
void make_weights(const RouterRule& rule, const float* scales, const int32_t* experts,
                  float* weights) {
  float sum = 0;
  for (int i = 0; i < rule.chosen; ++i) sum += weights[i];
  for (int i = 0; i < rule.chosen; ++i) {
    weights[i] = (rule.normalises ? weights[i] / sum : weights[i]) * rule.factor;
    if (scales != nullptr) weights[i] *= scales[experts[i]];
  }
}

}  // namespace

void choose_experts(const RouterRule& rule, float* scores, const float* bias, const float* scales,
                    int32_t* experts, float* weights) {
  form_scores(rule, scores);
  BestExperts best(experts, weights, rule.chosen);
  const int group_size = rule.experts / rule.groups;
  for (int group = 0; group < rule.groups; ++group) {
    if (rule.groups > 1 && !is_group_chosen(rule, scores, bias, group)) continue;
    for (int expert = group * group_size; expert < (group + 1) * group_size; ++expert) {
      const float value = selection(scores, bias, expert);
      best.offer(expert, std::isnan(value) ? kLeast : value);
    }
  }
  std::sort(experts, experts + rule.chosen);
  for (int i = 0; i < rule.chosen; ++i) weights[i] = scores[experts[i]];
  make_weights(rule, scales, experts, weights);
}

void weigh_experts(const RouterRule& rule, float* scores, const float* given, const float* scales,
                   int32_t* experts, float* weights) {
  const bool is_softmax = rule.form == RouterForm::kSoftmax;
  if (is_softmax) soften(scores, rule.experts);
  for (int i = 0; i < rule.chosen; ++i) {
    experts[i] = static_cast<int32_t>(given[i]);
    const float score = scores[experts[i]];
    weights[i] = is_softmax ? score : form_alone(rule.form, score);
  }
  make_weights(rule, scales, experts, weights);
}

}  // namespace lockstep
