// The processor time of a piece of work, for tests of how its cost grows: on a busy machine it
// grows by less than a factor of two, not by orders of magnitude.
#pragma once

#include <algorithm>
#include <ctime>

namespace lockstep {

// The minimum of several runs, in this process only.
template <class Work>
double least_processor_ms(int runs, const Work& work) {
  double least_ms = 1e9;
  for (int run = 0; run < runs; ++run) {
    const std::clock_t begin = std::clock();
    work();
    least_ms = std::min(least_ms, 1e3 * static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC);
  }
  return least_ms;
}

}  // namespace lockstep
