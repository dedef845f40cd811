// The links that a group reports: how each pair of ranks is connected, and why RDMA became TCP.
#include <doctest/doctest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "node/group_fixture.h"
#include "support/pair_times.h"
#include "support/process_holdings.h"

using namespace lockstep;

namespace {

// Sets the library that workers load from now on.
class LibraryScope {
 public:
  explicit LibraryScope(const std::string& path) {
    ::setenv("LOCKSTEP_VERBS_LIBRARY", path.c_str(), 1);
  }
  ~LibraryScope() { ::unsetenv("LOCKSTEP_VERBS_LIBRARY"); }
};

}  // namespace

TEST_CASE("without an RDMA library the status says that every pair uses TCP, and why") {
  const LibraryScope library("/nowhere/librdma.so");
  const TemporaryModel model;
  GroupSupervisorOptions options = echo_options(model, 3, "verbs");
  options.spec.link.rails = 2;
  const auto group = start_echo(options);
  const ModelStatus status = group->status();
  CHECK(status.link == "verbs");
  REQUIRE(status.links.size() == 3);
  for (const PairStatus& pair : status.links) {
    CHECK(pair.use.path == LinkPath::kTcp);
    CHECK(pair.use.rails == 2);
    CHECK(pair.use.tcp_rails == 0);
    CHECK_MESSAGE(pair.use.reason.find("/nowhere/librdma.so") != std::string::npos,
                  pair.use.reason);
    CHECK(pair.use.peer == pair.times.b);
    CHECK(pair.times.a < pair.times.b);
    CHECK(is_measured(pair.times));
  }
  check_serves(*group);
}

TEST_CASE("ranks without a link share no memory, in a line and in a pipeline") {
  struct Case {
    Topology topology;
    int stages;
    std::vector<int> links;  // of each rank
  };
  const TemporaryModel model;
  for (const Case& each :
       {Case{Topology::kMesh, 1, {3, 3, 3, 3}}, Case{Topology::kLine, 1, {1, 2, 2, 1}},
        Case{Topology::kMesh, 4, {2, 2, 2, 2}}}) {
    CAPTURE(each.stages);
    GroupSupervisorOptions options = echo_options(model, 4);
    options.spec.link.topology = each.topology;
    options.spec.link.stages = each.stages;
    const auto group = start_echo(options);
    const ModelStatus status = group->status();
    REQUIRE(status.ranks.size() == 4);
    int ends = 0;
    for (size_t rank = 0; rank < 4; ++rank) {
      CHECK(holdings_of(status.ranks[rank].pid).shared_maps == each.links[rank]);
      ends += each.links[rank];
    }
    CHECK(status.links.size() == static_cast<size_t>(ends / 2));
  }
}

TEST_CASE("the status shows rails and encryption of TCP links") {
  const TemporaryModel model;
  GroupSupervisorOptions options = echo_options(model, 2, "tcp");
  options.spec.link.rails = 3;
  options.spec.link.encrypts = true;
  const auto group = start_echo(options);
  const ModelStatus status = group->status();
  REQUIRE(status.links.size() == 1);
  CHECK(status.links[0].use.path == LinkPath::kTcp);
  CHECK(status.links[0].use.rails == 3);
  CHECK(status.links[0].use.is_encrypted);
  CHECK(status.links[0].use.own_host == "127.0.0.1");
  CHECK(status.links[0].use.peer_host == "127.0.0.1");
  CHECK(status.links[0].use.device == "");
  CHECK(status.links[0].use.network_note == "");
  CHECK(status.links[0].use.reason == "");
}
