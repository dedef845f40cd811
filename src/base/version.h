// The program's version, as printed by --version and the APIs. CMakeLists.txt reads it here.
#pragma once

namespace lockstep {

inline constexpr const char* kVersion = "0.1.0";

}  // namespace lockstep
