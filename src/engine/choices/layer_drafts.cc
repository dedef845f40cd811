#include "engine/choices/layer_drafts.h"

namespace lockstep {

void LayerDrafts::learn(int count, int were_right) {
  constexpr double kWeight = 1.0 / 10;
  for (int i = 0; i < were_right; ++i) right += kWeight * (1 - right);
  if (were_right < count) right -= kWeight * right;
}

}  // namespace lockstep
