// Quantisation of rows of floats to MLX's affine form: groups of 64 weights share a scale and a
// bias in BF16, weight = code * scale + bias. Pure functions; the result depends only on the
// weights, not on the instruction set. For QuantisingSource.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace lockstep {

inline constexpr int kQuantisedGroup = 64;
// Larger weights would overflow when squared. No weight of a model comes near.
inline constexpr float kQuantisedWeightMax = 1e18F;

constexpr bool is_affine_bits(int bits) {
  return bits == 2 || bits == 3 || bits == 4 || bits == 5 || bits == 6 || bits == 8;
}
// The list in error sentences.
inline constexpr const char* kAffineBits = "2, 3, 4, 5, 6 or 8";

constexpr size_t affine_code_bytes(size_t weights, int bits) {
  return weights * static_cast<size_t>(bits) / 8;
}

// Rounds to nearest, ties to even. For finite values.
uint16_t bf16_of(float value);

// The error of quantising some weights.
struct QuantisationError {
  double squared_error = 0;
  double squared_weight = 0;
  float largest = 0;  // error of one weight

  void add(const QuantisationError& other);
  // The root mean squared error relative to the weights' own; 0 if all are 0.
  double relative_rms() const;
};

// The output for `n` quantised groups.
struct AffineGroups {
  std::byte* codes = nullptr;  // n * 64 * bits / 8 bytes, the lowest bits first
  uint16_t* scales = nullptr;  // n, BF16
  uint16_t* biases = nullptr;  // n, BF16
};

// Whole groups of weights. False, with undefined output, if a weight is not finite or exceeds
// kQuantisedWeightMax.
//
// For each group it keeps the form with the least squared error among MLX's own (the larger edge
// and zero are exact) and four ranges, from the full one down to one that cuts off outliers, each
// both as it is and after a least-squares fit to its codes. Scales and biases are rounded to BF16
// before choosing codes. (MLX chooses codes with float32 scales and rounds these afterwards.)
bool quantise_groups(std::span<const float> weights, int bits, AffineGroups out,
                     QuantisationError& error);

}  // namespace lockstep
