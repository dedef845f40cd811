#include "node/network/collective_bench.h"

#include <doctest/doctest.h>

#include <string>

using namespace lockstep;

namespace {

CollectiveBenchOptions bench_options(LinkKind link, int ranks) {
  CollectiveBenchOptions options;
  options.link.kind = link;
  options.ranks = ranks;
  options.rounds = 200;
  options.worker_program = std::string(LOCKSTEP_BINARY_DIR) + "/node_test_worker";
  return options;
}

}  // namespace

TEST_CASE("all-reduces between processes are measured over every link") {
  for (const LinkKind link : {LinkKind::kShm, LinkKind::kTcp}) {
    for (int ranks : {1, 2, 3}) {
      CAPTURE(ranks);
      const auto times = bench_collective_processes(bench_options(link, ranks));
      REQUIRE_MESSAGE(times.ok(), (times.ok() ? "" : times.error().message));
      CHECK(times.value().min_us <= times.value().p50_us);
      CHECK(times.value().p50_us <= times.value().p99_us);
      CHECK(times.value().p99_us <= times.value().max_us);
    }
  }
}

TEST_CASE("an invalid benchmark is refused") {
  CollectiveBenchOptions options = bench_options(LinkKind::kShm, 0);
  CHECK(bench_collective_processes(options).error().code == ErrorCode::kInvalidArgument);
  options = bench_options(LinkKind::kShm, 2);
  options.bytes = 3;
  CHECK(bench_collective_processes(options).error().code == ErrorCode::kInvalidArgument);
}

TEST_CASE("a benchmark that takes too long ends at its deadline") {
  CollectiveBenchOptions options = bench_options(LinkKind::kShm, 2);
  options.rounds = 10'000'000;
  options.timeout = std::chrono::milliseconds(200);
  CHECK(bench_collective_processes(options).error().code == ErrorCode::kTimeout);
}
