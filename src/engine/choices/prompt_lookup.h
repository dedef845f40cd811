// Prompt lookup: guesses the next tokens of a sequence from its own text: those that followed the
// last occurrence of its last few tokens. Good for texts that repeat themselves, like edits of a
// file. Pure; used by the scheduler, which has the guesses checked. Allocates nothing.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "engine/engine.h"

namespace lockstep {

// This many last tokens must have occurred before.
inline constexpr int kLookupTokens = 3;
// How far back to search.
inline constexpr int kLookupWindow = 32'768;

// Returns how many tokens it has written into `guesses`; 0: no earlier occurrence.
int look_up(std::span<const int32_t> tokens, std::span<int32_t> guesses);

// The guesses of one sequence. After wrong guesses it makes fewer, and none for a while.
struct Drafts {
  static constexpr int kPauseMax = 64;

  static_assert(kDraftTokensMax <= kGuessTokensMax);
  std::array<int32_t, kGuessTokensMax> tokens{};
  int count = 0;       // in the step in flight
  int size = 2;        // to make next
  int pause = 0;       // steps until the next guesses
  int next_pause = 4;  // after a step without a right guess

  // This many of `count` were right.
  void learn(int right);
};

}  // namespace lockstep
