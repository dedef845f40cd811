#include "model/rope.h"

#include <numbers>

#include "kernels/math.h"

namespace lockstep {
namespace {

// As in Hugging Face transformers, modeling_rope_utils.py, "llama3".
double scaled(double frequency, const Llama3Rope& rope) {
  const double wavelength = 2 * std::numbers::pi / frequency;
  if (wavelength > rope.original_positions / rope.low_freq_factor) return frequency / rope.factor;
  if (wavelength < rope.original_positions / rope.high_freq_factor) return frequency;
  const double smooth = (rope.original_positions / wavelength - rope.low_freq_factor) /
                        (rope.high_freq_factor - rope.low_freq_factor);
  return (1 - smooth) * frequency / rope.factor + smooth * frequency;
}

}  // namespace

std::vector<double> rope_frequencies(const ModelConfig& config) {
  const int half = config.head_dim / 2;
  std::vector<double> frequencies(static_cast<size_t>(half));
  for (int i = 0; i < half; ++i) {
    const double exponent = -2.0 * i / config.head_dim;
    double frequency = exp_f64(exponent * log_f64(config.rope_theta));
    if (config.llama3_rope) frequency = scaled(frequency, *config.llama3_rope);
    frequencies[static_cast<size_t>(i)] = frequency;
  }
  return frequencies;
}

}  // namespace lockstep
