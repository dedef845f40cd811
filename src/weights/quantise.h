// Quantisation of rows of floats to MLX's affine form: groups of 64 weights share a scale and a
// bias in BF16, weight = code * scale + bias. Pure functions; the result depends on the weights
// alone, not on the instruction set. For QuantisingSource.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace lockstep {

inline constexpr int kQuantisedGroup = 64;
// Beyond this squares would leave the floats. No weight of a model is anywhere near.
inline constexpr float kQuantisedWeightMax = 1e18F;

constexpr bool is_affine_bits(int bits) {
  return bits == 2 || bits == 3 || bits == 4 || bits == 5 || bits == 6 || bits == 8;
}
// What error sentences list.
inline constexpr const char* kAffineBits = "2, 3, 4, 5, 6 or 8";

constexpr size_t affine_code_bytes(size_t weights, int bits) {
  return weights * static_cast<size_t>(bits) / 8;
}

// Rounds to the nearest, ties to even. For finite values.
uint16_t bf16_of(float value);

// What quantisation did to some weights.
struct QuantisationError {
  double squared_error = 0;
  double squared_weight = 0;
  float largest = 0;  // error of one weight

  void add(const QuantisationError& other);
  // The root of the mean squared error, as a part of the weights' own; 0 where all are 0.
  double relative_rms() const;
};

// Where the quantised form of `n` groups goes.
struct AffineGroups {
  std::byte* codes = nullptr;  // n * 64 * bits / 8 bytes, the lowest bits first
  uint16_t* scales = nullptr;  // n, BF16
  uint16_t* biases = nullptr;  // n, BF16
};

// Whole groups of weights. False, and an undefined form, if one is not finite or beyond
// kQuantisedWeightMax.
//
// Of each group the form with the least squared error is kept among MLX's own (the larger edge and
// zero are exact) and four ranges, from the full one down to one that cuts outliers off, each as it
// is and after a least-squares fit to its codes. Scales and biases are rounded to BF16 before codes
// are chosen. (MLX chooses codes with float32 scales and rounds these afterwards.)
bool quantise_groups(std::span<const float> weights, int bits, AffineGroups out,
                     QuantisationError& error);

}  // namespace lockstep
