// The program's version, as printed by --version and the APIs. Must match CMakeLists.txt.
#pragma once

namespace lockstep {

inline constexpr const char* kVersion = "0.1.0";

}  // namespace lockstep
