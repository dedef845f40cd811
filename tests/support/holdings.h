// For doctest: checks that a process holds the same resources as before.
#pragma once

#include <doctest/doctest.h>

#include "support/process_holdings.h"
#include "support/sanitizers.h"

namespace lockstep {

// The allocator may or may not keep the pages of a link's buffer: 1 MiB, however many rounds.
inline constexpr int kPrivateSlackKib = 2048;

inline void check_unchanged(const Holdings& before, const Holdings& after, int children = 0) {
  CHECK(after.descriptors == before.descriptors);
  CHECK(after.threads == before.threads);
  CHECK(after.children == children);
  CHECK(after.shared_segments <= before.shared_segments);
  CHECK(after.shared_maps == before.shared_maps);
  CHECK(after.named_maps <= before.named_maps);
  MESSAGE("private: " << before.private_kib << " KiB before, " << after.private_kib
                      << " KiB after");
  if (!kHasSanitizer) CHECK(after.private_kib < before.private_kib + kPrivateSlackKib);
}

}  // namespace lockstep
