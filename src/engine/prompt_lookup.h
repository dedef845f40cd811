// Prompt lookup: guesses the next tokens of a sequence from its own text: what followed the last
// time that its last few tokens came. Good where a text repeats itself, as edits of a file do.
// Pure; used by the scheduler, which has the guesses checked. Allocates nothing.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "engine/engine.h"

namespace lockstep {

// So many last tokens must have come before.
inline constexpr int kLookupTokens = 3;
// So far back they are looked for.
inline constexpr int kLookupWindow = 32'768;

// Returns how many tokens it has written into `guesses`; 0: these tokens never came before.
int look_up(std::span<const int32_t> tokens, std::span<int32_t> guesses);

// The guesses of one sequence. Where they fail there are fewer, and none for a while.
struct Drafts {
  static constexpr int kPauseMax = 64;

  std::array<int32_t, kDraftTokensMax> tokens{};
  int count = 0;       // in the step under way
  int size = 2;        // that are made next
  int pause = 0;       // steps until then
  int next_pause = 4;  // after guesses of which none was right

  // So many of `count` were right.
  void learn(int right);
};

}  // namespace lockstep
