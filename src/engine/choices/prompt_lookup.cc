#include "engine/choices/prompt_lookup.h"

#include <algorithm>
#include <cstddef>

namespace lockstep {

int look_up(std::span<const int32_t> tokens, std::span<int32_t> guesses) {
  constexpr size_t kTail = kLookupTokens;
  if (guesses.empty() || tokens.size() <= kTail) return 0;
  const auto tail = tokens.last(kTail);
  const size_t last = tokens.size() - kTail;  // where the tail begins
  const size_t first = last > kLookupWindow ? last - kLookupWindow : 0;
  for (size_t begin = last; begin-- > first;) {
    const auto found = tokens.subspan(begin, kTail);
    if (!std::equal(tail.begin(), tail.end(), found.begin())) continue;
    const auto next = tokens.subspan(begin + kTail);
    const size_t count = std::min(next.size(), guesses.size());
    std::copy_n(next.begin(), count, guesses.begin());
    return static_cast<int>(count);
  }
  return 0;
}

void Drafts::learn(int right) {
  if (right == count) {
    size = std::min(size + 2, kDraftTokensMax);
    next_pause = 4;
  } else if (right == 0) {
    size = std::max(1, size / 2);
    pause = next_pause;
    next_pause = std::min(2 * next_pause, kPauseMax);
  } else {
    size = std::max(2, right + 1);
  }
}

}  // namespace lockstep
