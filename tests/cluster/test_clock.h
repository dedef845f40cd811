// The moment at which tests of this folder begin; a clock that counts from its machine's start has
// been running for a while.
#pragma once

#include <chrono>

namespace lockstep {

inline constexpr std::chrono::steady_clock::time_point kNow =
    std::chrono::steady_clock::time_point() + std::chrono::hours(1);

}  // namespace lockstep
