// Sizes in bytes.
#pragma once

#include <cstddef>

namespace lockstep {

inline constexpr size_t kMiB = 1 << 20;

}  // namespace lockstep
