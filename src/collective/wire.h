// The form in which the vectors of an exchange travel. Anything but kF32 rounds partial sums, by
// how the ranks are cut: it is off unless asked for, and gives the one answer away.
#pragma once

#include <string_view>

#include "base/result.h"

namespace lockstep {

enum class Wire {
  kF32,   // as they are
  kBf16,  // prompts only: half the bytes
  kQ8,    // prompts only: 8 bits and a scale for 32 values
};

Result<Wire> parse_wire(std::string_view name);
std::string_view wire_name(Wire wire);

}  // namespace lockstep
