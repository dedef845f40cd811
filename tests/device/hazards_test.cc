// Which dispatches of a GPU wait for earlier ones.
#include <doctest/doctest.h>

#if defined(LOCKSTEP_HAS_GPU)

#include "device/gpu/hazards.h"

using lockstep::gpu::Hazards;
using lockstep::gpu::MemoryRange;

namespace {

constexpr MemoryRange kA{1000, 100}, kB{1100, 100}, kC{1200, 100}, kAcross{1150, 100};

Hazards after_first(std::initializer_list<MemoryRange> reads,
                    std::initializer_list<MemoryRange> writes) {
  Hazards hazards;
  CHECK(hazards.add(reads, writes));  // the first of a plan waits for the plan before
  return hazards;
}

}  // namespace

TEST_CASE("a dispatch that reads what an earlier one writes waits") {
  CHECK(after_first({kA}, {kB}).add({kB}, {kC}));
  CHECK(after_first({kA}, {kB}).add({kAcross}, {kC}));
}

TEST_CASE("a dispatch that writes what an earlier one reads or writes waits") {
  CHECK(after_first({kA}, {kB}).add({kC}, {kA}));
  CHECK(after_first({kA}, {kB}).add({kC}, {kB}));
  CHECK(after_first({kA}, {kB}).add({}, {kAcross}));
}

TEST_CASE("dispatches that read alike, and those of neighbouring bytes, do not wait") {
  CHECK_FALSE(after_first({kA}, {kB}).add({kA}, {kC}));
  CHECK_FALSE(after_first({}, {kA}).add({kB}, {kC}));
  CHECK_FALSE(after_first({}, {kA}).add({}, {kB}));
}

TEST_CASE("an empty range is no hazard") {
  CHECK_FALSE(after_first({}, {kA}).add({MemoryRange{}}, {MemoryRange{}}));
}

TEST_CASE("a dispatch is compared with all since the last wait, and with none before it") {
  Hazards hazards = after_first({}, {kA});
  CHECK_FALSE(hazards.add({}, {kB}));
  CHECK_FALSE(hazards.add({}, {kC}));
  CHECK(hazards.add({kA}, {}));
  CHECK_FALSE(hazards.add({kB, kC}, {}));
}

TEST_CASE("a dispatch waits when told to, and when too many are remembered") {
  Hazards hazards = after_first({}, {kA});
  hazards.wait_for_all();
  CHECK(hazards.add({}, {kB}));
  int waits = 0;
  for (uint64_t i = 0; i < 1000; ++i) waits += hazards.add({}, {MemoryRange{2000 + i, 1}}) ? 1 : 0;
  CHECK(waits > 0);
  CHECK(waits < 100);
}

#endif
