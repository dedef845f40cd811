#include "transport/link_options.h"

#include <doctest/doctest.h>
#include <fmt/core.h>

#include <string>

using namespace lockstep;

TEST_CASE("kinds of links and topologies have names, and other names are refused") {
  for (const LinkKind kind : {LinkKind::kShm, LinkKind::kTcp, LinkKind::kVerbs}) {
    CHECK(parse_link_kind(link_kind_name(kind)).value() == kind);
  }
  for (const Topology topology :
       {Topology::kMesh, Topology::kLine, Topology::kRing, Topology::kStar}) {
    CHECK(parse_topology(topology_name(topology)).value() == topology);
  }
  CHECK(parse_link_kind("carrier pigeon").error().code == ErrorCode::kInvalidArgument);
  CHECK(parse_topology("").error().code == ErrorCode::kInvalidArgument);
}

TEST_CASE("a topology connects the pairs that its name implies") {
  const auto pairs = [](Topology topology, int size) {
    int count = 0;
    for (int a = 0; a < size; ++a) {
      for (int b = 0; b < size; ++b) {
        CHECK(is_joined(topology, size, a, b) == is_joined(topology, size, b, a));
        count += is_joined(topology, size, a, b) ? 1 : 0;
      }
    }
    return count / 2;
  };
  CHECK(pairs(Topology::kMesh, 6) == 15);
  CHECK(pairs(Topology::kLine, 6) == 5);
  CHECK(pairs(Topology::kRing, 6) == 6);
  CHECK(pairs(Topology::kRing, 2) == 1);
  CHECK(pairs(Topology::kStar, 6) == 5);
  CHECK(is_joined(Topology::kRing, 6, 5, 0));
  CHECK_FALSE(is_joined(Topology::kLine, 6, 5, 0));
  CHECK_FALSE(is_joined(Topology::kStar, 6, 1, 2));
}

TEST_CASE("a pipeline has the links that it uses and no others") {
  const auto joined = [](int size, int stages) {
    std::string pairs;
    for (int a = 0; a < size; ++a) {
      for (int b = a + 1; b < size; ++b) {
        CHECK(is_joined({.stages = stages}, size, a, b) ==
              is_joined({.stages = stages}, size, b, a));
        if (is_joined({.stages = stages}, size, a, b)) pairs += fmt::format("{}{} ", a, b);
      }
    }
    return pairs;
  };
  CHECK(joined(3, 1) == "01 02 12 ");
  CHECK(joined(2, 2) == "01 ");
  CHECK(joined(4, 4) == "01 03 12 23 ");
  CHECK(joined(4, 2) == "01 02 13 23 ");
  CHECK(joined(6, 3) == "01 02 04 13 23 24 35 45 ");
}

TEST_CASE("options of links that contradict each other are refused with a sentence") {
  CHECK(check_link_options({}).ok());
  CHECK(check_link_options({.kind = LinkKind::kTcp, .rails = 4, .encrypts = true}).ok());
  CHECK(check_link_options({.delay_us = 300, .gbit_s = 0.5}).ok());
  const LinkOptions bad[] = {
      {.rails = 2},          {.encrypts = true}, {.kind = LinkKind::kTcp, .rails = 0},
      {.delay_us = -1},      {.gbit_s = -1},     {.kind = LinkKind::kTcp, .rails = 9},
      {.delay_us = 2000000}, {.stages = 0},      {.topology = Topology::kLine, .stages = 2}};
  for (const LinkOptions& options : bad) {
    const Status status = check_link_options(options);
    REQUIRE(!status.ok());
    CHECK(status.error().code == ErrorCode::kInvalidArgument);
  }
}
