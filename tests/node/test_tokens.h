// First tokens of a prompt that make the test worker's rank misbehave; the prompt's second token
// selects the rank.
#pragma once

#include <cstdint>

namespace lockstep {

inline constexpr int32_t kAbortToken = 90'001;
inline constexpr int32_t kExitToken = 90'002;
inline constexpr int32_t kCrashToken = 90'003;
inline constexpr int32_t kHangToken = 90'004;
inline constexpr int32_t kSlowToken = 90'005;    // 5 ms per step
inline constexpr int32_t kGiveUpToken = 90'006;  // the rank leaves the epoch as after a bad frame
inline constexpr int32_t kTireToken = 90'007;    // ... as after a time-out

// A prompt of this token and another one gets kHeldTokens tokens and no more until the request is
// resumed after a loss: a stream that runs for as long as a test wants.
inline constexpr int32_t kHeldToken = 90'008;
inline constexpr int kHeldTokens = 20;

}  // namespace lockstep
