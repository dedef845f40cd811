#include "model/forward/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "kernels/math.h"

namespace lockstep {
namespace {

// As in Hugging Face transformers, modeling_rope_utils.py, "llama3".
double scaled_frequency(double frequency, const Llama3Rope& rope) {
  const double wavelength = 2 * std::numbers::pi / frequency;
  if (wavelength > rope.original_positions / rope.low_freq_factor) return frequency / rope.factor;
  if (wavelength < rope.original_positions / rope.high_freq_factor) return frequency;
  const double smooth = (rope.original_positions / wavelength - rope.low_freq_factor) /
                        (rope.high_freq_factor - rope.low_freq_factor);
  return (1 - smooth) * frequency / rope.factor + smooth * frequency;
}

// Which of the head's pairs turns `turns` times over the original context, as a fraction.
double pair_that_turns(double turns, const ModelConfig& config, const YarnRope& rope) {
  return config.rotary_dims * log_f64(rope.original_positions / (turns * 2 * std::numbers::pi)) /
         (2 * log_f64(config.rope_theta));
}

// As in Hugging Face transformers, modeling_rope_utils.py, "yarn".
std::vector<double> yarn_frequencies(std::vector<double> frequencies, const ModelConfig& config) {
  const YarnRope& rope = *config.yarn_rope;
  double low = pair_that_turns(rope.beta_fast, config, rope);
  double high = pair_that_turns(rope.beta_slow, config, rope);
  if (rope.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(config.rotary_dims - 1));
  if (low == high) high += 0.001;
  for (size_t i = 0; i < frequencies.size(); ++i) {
    const double slow = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    frequencies[i] = frequencies[i] / rope.factor * slow + frequencies[i] * (1 - slow);
  }
  return frequencies;
}

// The frequency of a pair of dimensions, before any scaling.
double frequency_of(int pair, int dims, double theta) {
  return exp_f64(-2.0 * pair / dims * log_f64(theta));
}

}  // namespace

std::vector<double> rope_frequencies(const ModelConfig& config) {
  std::vector<double> frequencies(rope_pairs(config));
  for (int i = 0; i < static_cast<int>(frequencies.size()); ++i) {
    if (config.rotates_nothing) break;
    double frequency = frequency_of(i, config.rotary_dims, config.rope_theta);
    if (!config.rope_factors.empty()) frequency /= config.rope_factors[static_cast<size_t>(i)];
    if (config.llama3_rope) frequency = scaled_frequency(frequency, *config.llama3_rope);
    frequencies[static_cast<size_t>(i)] = frequency;
  }
  if (config.yarn_rope) return yarn_frequencies(std::move(frequencies), config);
  return frequencies;
}

std::vector<double> other_rope_frequencies(const ModelConfig& config) {
  if (config.compressed) {
    std::vector<double> frequencies;
    for (int i = 0; i < config.rotary_dims / 2; ++i) {
      frequencies.push_back(frequency_of(i, config.rotary_dims, config.compressed->window_theta));
    }
    return frequencies;
  }
  if (!config.full) return {};
  const FullAttention& full = *config.full;
  std::vector<double> frequencies(static_cast<size_t>(full.head_dim / 2));
  for (int i = 0; i < full.turning_pairs; ++i) {
    frequencies[static_cast<size_t>(i)] = frequency_of(i, full.head_dim, full.rope_theta);
  }
  return frequencies;
}

void append_rope_row(std::span<const double> frequencies, int32_t position, float factor,
                     std::vector<float>& table) {
  const size_t begin = table.size();
  table.resize(begin + 2 * frequencies.size());
  float* const cosines = table.data() + begin;
  float* const sines = cosines + frequencies.size();
  for (size_t i = 0; i < frequencies.size(); ++i) {
    const SinCos angle = sincos_f64(position * frequencies[i]);
    cosines[i] = static_cast<float>(angle.cosine * double{factor});
    sines[i] = static_cast<float>(angle.sine * double{factor});
  }
}

float query_factor(const QueryScaling& scaling, int32_t position) {
  const double periods = std::floor(position / scaling.original_positions);
  return static_cast<float>(1 + scaling.beta * log_f64(1 + periods));
}

}  // namespace lockstep
