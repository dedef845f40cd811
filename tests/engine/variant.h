// A way to run a model, for tests that compare the answers of many.
#pragma once

#include <string>

#include "support/rank_threads.h"

namespace lockstep {

struct Variant {
  std::string name;
  Setup setup;
  int chunk = 0;
};

}  // namespace lockstep
