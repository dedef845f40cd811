#include "node/network/link_probe.h"
#include "support/pair_times.h"

#include <doctest/doctest.h>

#include <string>

using namespace lockstep;

namespace {

MeasuringOptions probe_options(const LinkOptions& link, int ranks) {
  MeasuringOptions options;
  options.link = link;
  options.ranks = ranks;
  options.worker_program = std::string(LOCKSTEP_BINARY_DIR) + "/node_test_worker";
  return options;
}

}  // namespace

TEST_CASE("every pair of ranks is measured once, over every link") {
  for (const LinkOptions& link :
       {LinkOptions{.kind = LinkKind::kShm},
        LinkOptions{.kind = LinkKind::kTcp, .rails = 2, .encrypts = true}}) {
    const auto pairs = probe_processes(probe_options(link, 3));
    REQUIRE_MESSAGE(pairs.ok(), (pairs.ok() ? "" : pairs.error().message));
    REQUIRE(pairs.value().size() == 3);
    size_t next = 0;
    for (int a = 0; a < 3; ++a) {
      for (int b = a + 1; b < 3; ++b) {
        const PairTimes& pair = pairs.value()[next++];
        CHECK(pair.a == a);
        CHECK(pair.b == b);
        CHECK(is_probed(pair));
      }
    }
  }
}

TEST_CASE("a probe measures a slowed link") {
  const auto pairs =
      probe_processes(probe_options({.kind = LinkKind::kShm, .delay_us = 2000, .gbit_s = 1}, 2));
  REQUIRE_MESSAGE(pairs.ok(), (pairs.ok() ? "" : pairs.error().message));
  REQUIRE(pairs.value().size() == 1);
  CHECK(pairs.value()[0].p50_us >= 2000);
  CHECK(pairs.value()[0].p50_16k_us >= 2000 + 131);  // 16 KiB at 1 Gbit/s
  CHECK(pairs.value()[0].gbit_s <= 1);
}

TEST_CASE("an invalid probe is refused") {
  CHECK(probe_processes(probe_options({}, 1)).error().code == ErrorCode::kInvalidArgument);
  CHECK(probe_processes(probe_options({.rails = 3}, 2)).error().code ==
        ErrorCode::kInvalidArgument);
}
