// The softmax of a few numbers in place. Plain code in a fixed order of operations, with our own
// exp.
#pragma once

namespace lockstep {

// Sums in ascending order. At least one number.
void soften(float* scores, int count);

}  // namespace lockstep
