// The format in which an exchange sends vectors. Anything but kF32 rounds partial sums, so that
// results depend on how the ranks are cut: it is off by default.
#pragma once

#include <string_view>

#include "base/result.h"

namespace lockstep {

enum class Wire {
  kF32,   // as they are
  kBf16,  // prompts only: half the bytes
  kQ8,    // prompts only: 8 bits per value and a scale per 32 values
};

Result<Wire> parse_wire(std::string_view name);
std::string_view wire_name(Wire wire);

}  // namespace lockstep
