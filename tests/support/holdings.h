// For doctest: that a process holds what it held before.
#pragma once

#include <doctest/doctest.h>

#include "support/process_holdings.h"

namespace lockstep {

// The kernel joins neighbouring maps of the heap, or does not.
inline constexpr int kMapsSlack = 4;
// The allocator keeps the pages of a link's buffer, or does not: 1 MiB, whatever the rounds.
inline constexpr int kResidentSlackKib = 2048;

inline void check_unchanged(const Holdings& before, const Holdings& after, int children = 0) {
  CHECK(after.descriptors == before.descriptors);
  CHECK(after.threads == before.threads);
  CHECK(after.children == children);
  CHECK(after.shared_segments <= before.shared_segments);
  CHECK(after.shared_maps == before.shared_maps);
  MESSAGE("resident: " << before.resident_kib << " KiB before, " << after.resident_kib
                       << " KiB after");
#if !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)  // these map memory of their own
  CHECK(after.maps <= before.maps + kMapsSlack);
  CHECK(after.resident_kib < before.resident_kib + kResidentSlackKib);
#endif
}

}  // namespace lockstep
