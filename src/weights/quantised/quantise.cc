#include "weights/quantised/quantise.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "tensor/half.h"

namespace lockstep {
namespace {

constexpr int kCodesGroup = kQuantisedGroup;
constexpr int kLanes = 16;  // sums that run in parallel, so that loops become vectors
constexpr int kRanges = 4;
constexpr float kScaleMin = 1e-7F;         // MLX's
constexpr float kFittedScaleMin = 1e-20F;  // kQuantisedWeightMax divided by it is still a float

struct Affine {
  float scale = 0;
  float bias = 0;
};

float rounded_to_bf16(float value) {
  return float_of_bf16(bf16_of(value));
}

Affine rounded(Affine form) {
  return {rounded_to_bf16(form.scale), rounded_to_bf16(form.bias)};
}

struct Lanes {
  std::array<float, kLanes> at{};

  float sum() const {
    std::array<float, kLanes> part = at;
    for (int width = kLanes / 2; width > 0; width /= 2) {
      for (int i = 0; i < width; ++i) part[i] += part[i + width];
    }
    return part[0];
  }
};

struct GroupFacts {
  float least = 0;
  float most = 0;
  float sum = 0;
  float squares = 0;
  bool is_sound = false;
};

GroupFacts facts_of(const float* weights) {
  Lanes least, most, sum, squares, nothing;
  for (int i = 0; i < kLanes; ++i) least.at[i] = most.at[i] = weights[i];
  for (int i = 0; i < kCodesGroup; i += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) {
      const float weight = weights[i + lane];
      least.at[lane] = weight < least.at[lane] ? weight : least.at[lane];
      most.at[lane] = weight > most.at[lane] ? weight : most.at[lane];
      sum.at[lane] += weight;
      squares.at[lane] += weight * weight;
      nothing.at[lane] += weight * 0.0F;  // NaN for infinities and NaNs
    }
  }
  GroupFacts facts;
  facts.least = *std::min_element(least.at.begin(), least.at.end());
  facts.most = *std::max_element(most.at.begin(), most.at.end());
  facts.sum = sum.sum();
  facts.squares = squares.sum();
  facts.is_sound = nothing.sum() == 0 && std::max(-facts.least, facts.most) <= kQuantisedWeightMax;
  return facts;
}

struct Fit {
  float error = 0;          // the sum of squares
  float codes = 0;          // sums over the group: of the codes,
  float squared_codes = 0;  // their squares,
  float products = 0;       // and code * weight
};

// The nearest codes, as floats, and their fit. 1.5 * 2^23 has no fraction bits: adding it rounds to
// the nearest integer, ties to even.
Fit encode(const float* weights, Affine form, float code_max, float* codes) {
  constexpr float kRounder = 0x1.8p23F;
  const float inverse = 1 / form.scale;
  Lanes error, sum, squares, products;
  for (int i = 0; i < kCodesGroup; i += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) {
      const float weight = weights[i + lane];
      float code = (weight - form.bias) * inverse;
      code = code > 0 ? code : 0;
      code = code < code_max ? code : code_max;
      code = (code + kRounder) - kRounder;
      codes[i + lane] = code;
      const float miss = weight - (code * form.scale + form.bias);
      error.at[lane] += miss * miss;
      sum.at[lane] += code;
      squares.at[lane] += code * code;
      products.at[lane] += code * weight;
    }
  }
  return {error.sum(), sum.sum(), squares.sum(), products.sum()};
}

// MLX's choice: https://github.com/ml-explore/mlx, quantize in mlx/backend/cpu/quantized.cpp.
Affine mlx_form(const GroupFacts& facts, float code_max) {
  const bool is_low_larger = std::fabs(facts.least) > std::fabs(facts.most);
  const float step = std::max((facts.most - facts.least) / code_max, kScaleMin);
  const float scale = is_low_larger ? step : -step;
  const float edge = is_low_larger ? facts.least : facts.most;
  const float zero_code = std::nearbyint(edge / scale);
  if (zero_code == 0) return {scale, 0};
  return {edge / zero_code, edge};
}

// The least-squares line through (code, weight). A scale of 0: there is none.
Affine fitted_form(const Fit& fit, const GroupFacts& facts) {
  const double count = kCodesGroup, codes = fit.codes;
  const double spread = count * fit.squared_codes - codes * codes;
  if (spread <= 0) return {};
  const double scale = (count * fit.products - codes * facts.sum) / spread;
  return {static_cast<float>(scale), static_cast<float>((facts.sum - scale * codes) / count)};
}

// How much the narrowest range cuts off: least error for normally distributed weights, and not much
// more for those with longer tails.
float narrowing(int bits) {
  constexpr float kOf[] = {0, 0, 0.5F, 0.35F, 0.25F, 0.15F, 0.1F, 0.1F, 0.1F};
  return kOf[bits];
}

class BestForm {
 public:
  BestForm(const float* weights, float code_max) : weights_(weights), code_max_(code_max) {}

  // The scale and bias of `form` must be BF16 values.
  Fit consider(Affine form) {
    float codes[kCodesGroup];
    const Fit fit = encode(weights_, form, code_max_, codes);
    if (!has_form_ || fit.error < error_) {
      has_form_ = true;
      error_ = fit.error;
      form_ = form;
    }
    return fit;
  }
  Affine form() const { return form_; }

 private:
  const float* weights_;
  float code_max_;
  bool has_form_ = false;
  float error_ = 0;
  Affine form_;
};

Affine best_form(const float* weights, const GroupFacts& facts, int bits) {
  const auto code_max = static_cast<float>((1 << bits) - 1);
  BestForm best(weights, code_max);
  best.consider(rounded(mlx_form(facts, code_max)));
  const float middle = facts.least + (facts.most - facts.least) / 2;
  for (int i = 0; i < kRanges; ++i) {
    const float part = 1 - narrowing(bits) * static_cast<float>(i) / kRanges;
    const float range = (facts.most - facts.least) * part;
    const Affine form = rounded({range / code_max, middle - range / 2});
    if (form.scale < kFittedScaleMin) break;
    const Affine fitted = rounded(fitted_form(best.consider(form), facts));
    if (std::fabs(fitted.scale) >= kFittedScaleMin) best.consider(fitted);
  }
  return best.form();
}

// Eight codes fill `bits` bytes.
void pack_codes(const float* codes, int bits, std::byte* out) {
  for (int i = 0; i < kCodesGroup; i += 8) {
    uint64_t word = 0;
    for (int k = 0; k < 8; ++k) {
      word |= static_cast<uint64_t>(static_cast<int>(codes[i + k])) << (bits * k);
    }
    for (int k = 0; k < bits; ++k) *out++ = static_cast<std::byte>(word >> 8 * k);
  }
}

float largest_miss(const float* weights, const float* codes, Affine form) {
  float largest = 0;
  for (int i = 0; i < kCodesGroup; ++i) {
    const float miss = std::fabs(weights[i] - (codes[i] * form.scale + form.bias));
    largest = miss > largest ? miss : largest;
  }
  return largest;
}

}  // namespace

uint16_t bf16_of(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

void QuantisationError::add(const QuantisationError& other) {
  squared_error += other.squared_error;
  squared_weight += other.squared_weight;
  largest = std::max(largest, other.largest);
}

double QuantisationError::relative_rms() const {
  return squared_weight > 0 ? std::sqrt(squared_error / squared_weight) : 0;
}

bool quantise_groups(std::span<const float> weights, int bits, AffineGroups out,
                     QuantisationError& error) {
  LOCKSTEP_CHECK(is_affine_bits(bits) && weights.size() % kCodesGroup == 0);
  const auto code_max = static_cast<float>((1 << bits) - 1);
  const size_t code_bytes = affine_code_bytes(kCodesGroup, bits);
  float codes[kCodesGroup];
  for (size_t i = 0; i < weights.size() / kCodesGroup; ++i) {
    const float* group = weights.data() + i * kCodesGroup;
    const GroupFacts facts = facts_of(group);
    if (!facts.is_sound) return false;
    const Affine form = best_form(group, facts, bits);
    const Fit fit = encode(group, form, code_max, codes);
    pack_codes(codes, bits, out.codes + i * code_bytes);
    out.scales[i] = bf16_of(form.scale);
    out.biases[i] = bf16_of(form.bias);
    error.add({fit.error, facts.squares, largest_miss(group, codes, form)});
  }
  return true;
}

}  // namespace lockstep
