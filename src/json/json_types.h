// JsonTypes: a set of JSON types as bits, with integers distinct from other numbers. Also part of
// texts sent between machines, so the numbers must not change.
#pragma once

#include <cstdint>

namespace lockstep {

using JsonTypes = uint8_t;
inline constexpr JsonTypes kJsonString = 1;
inline constexpr JsonTypes kJsonNull = 2;
inline constexpr JsonTypes kJsonBool = 4;
inline constexpr JsonTypes kJsonInteger = 8;
inline constexpr JsonTypes kJsonFraction = 16;
inline constexpr JsonTypes kJsonArray = 32;
inline constexpr JsonTypes kJsonObject = 64;
inline constexpr JsonTypes kJsonAny = 127;

}  // namespace lockstep
