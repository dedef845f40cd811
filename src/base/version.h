// The version of the program, as --version and the APIs print it. CMakeLists.txt has the same.
#pragma once

namespace lockstep {

inline constexpr const char* kVersion = "0.1.0";

}  // namespace lockstep
