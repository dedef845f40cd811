// First tokens of a prompt that make the test worker's rank misbehave; the prompt's second token
// says which rank.
#pragma once

#include <cstdint>

namespace lockstep {

inline constexpr int32_t kAbortToken = 90'001;
inline constexpr int32_t kExitToken = 90'002;
inline constexpr int32_t kCrashToken = 90'003;
inline constexpr int32_t kHangToken = 90'004;
inline constexpr int32_t kSlowToken = 90'005;    // 5 ms a step
inline constexpr int32_t kGiveUpToken = 90'006;  // the rank leaves the epoch as after a bad frame
inline constexpr int32_t kTireToken = 90'007;    // ... as after a time-out

}  // namespace lockstep
