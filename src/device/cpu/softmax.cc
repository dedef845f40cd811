#include "device/cpu/softmax.h"

#include <algorithm>

#include "kernels/math.h"

namespace lockstep {

void soften(float* scores, int count) {
  const float largest = *std::max_element(scores, scores + count);
  float sum = 0;
  for (int i = 0; i < count; ++i) {
    scores[i] = exp_f32(scores[i] - largest);
    sum += scores[i];
  }
  for (int i = 0; i < count; ++i) scores[i] /= sum;
}

}  // namespace lockstep
