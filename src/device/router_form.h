// The forms of a router's scores.
#pragma once

#include <cstdint>

namespace lockstep {

// The form that a router's products take before the choice.
enum class RouterForm : uint8_t {
  kSoftmax,       // over all experts
  kSigmoid,       // of each
  kRootSoftplus,  // sqrt(log(1 + exp(x))) of each, and 0 below -86
};

}  // namespace lockstep
