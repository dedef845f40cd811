// The real program as workers: loading and unloading a model any number of times leaves this
// process as it was.
#include <doctest/doctest.h>

#include "node/group/group_supervisor.h"
#include "support/holdings.h"

using namespace lockstep;

namespace {

void load_and_unload(int rounds) {
  for (int round = 0; round < rounds; ++round) {
    GroupSupervisorOptions options;
    options.spec.model = std::string(LOCKSTEP_SOURCE_DIR) + "/models/stories260K";
    options.spec.shares = equal_shares(1 + round % 3);
    options.spec.link.kind = round % 2 == 0 ? LinkKind::kShm : LinkKind::kTcp;
    options.worker_program = std::string(LOCKSTEP_BINARY_DIR) + "/lockstep";
    const auto group = GroupSupervisor::start(options);
    REQUIRE_MESSAGE(group.ok(), group.error().message);
    CHECK(group.value()->status().state == ModelStatus::State::kReady);
  }
}

}  // namespace

TEST_CASE("200 loads and unloads of a real model leak nothing") {
  load_and_unload(6);  // made once: the allocator's arenas, libraries
  const Holdings before = holdings();
  load_and_unload(200);
  check_unchanged(before, holdings());
}
