// How the operations of a device join gates with what they open.
#pragma once

namespace lockstep {

// How a gate and what it opens, `up`, are joined.
enum class Activation {
  kSiluMul,         // silu(gate) * up
  kClampedSwiglu,   // see clamped_swiglu in kernels/kernels.h
  kGeluMul,         // gelu(gate) * up, with the approximation of gelu by tanh
  kSigmoidMul,      // sigmoid(gate) * up
  kClippedSiluMul,  // silu_mul of a gate of at most the limit and an `up` of at most it in size
};

inline bool has_limit(Activation activation) {
  return activation == Activation::kClampedSwiglu || activation == Activation::kClippedSiluMul;
}

// 2 sqrt(2 / pi), and that times 0.044715.
inline constexpr float kGeluSlope = 1.5957691216f, kGeluSquare = 0.0713548163f;

}  // namespace lockstep
