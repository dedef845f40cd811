// The choice of the best of many scores, exact and the same everywhere.
#pragma once

#include <cstdint>
#include <span>

namespace lockstep {

// Sets a bit for each of the `count` largest scores in the words of whole pages that they fill, and
// clears the others there. Among equals the lower place wins, a NaN is the worst; zeros and numbers
// without a normal exponent are equal. There are more than `count` scores.
void choose_best(std::span<const float> scores, int count, uint32_t* words);
// In place: from a bit for each of the `complete` pools of `pool` positions to one for each
// position up to `position`, in the words of whole pages. Positions after these pools are chosen.
void spread_pools(int complete, int pool, int position, uint32_t* words);

}  // namespace lockstep
