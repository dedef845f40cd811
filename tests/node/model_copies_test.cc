#include "node/fetch/model_copies.h"

#include <doctest/doctest.h>

#include "node/fake_hub.h"
#include "node/fetch_fixture.h"
#include "support/numbered_node.h"

using namespace lockstep;

namespace {

std::vector<RankPart> ranks_on(std::initializer_list<NodeId> nodes) {
  std::vector<RankPart> ranks;
  for (const NodeId& node : nodes) ranks.push_back({.node = node, .bytes = 1, .share = 1});
  return ranks;
}

}  // namespace

TEST_CASE("model copies: the next live node keeps a copy for one that runs a model alone") {
  const NodeId a = node(1), b = node(2), c = node(3);
  CHECK(copy_keeper(ranks_on({a}), {a, b, c}) == b);
  CHECK(copy_keeper(ranks_on({a, a}), {a, c}) == c);
  CHECK(copy_keeper(ranks_on({c}), {a, b, c}) == a);
  CHECK(copy_keeper(ranks_on({b}), {a, c}) == c);  // about to be found lost
  CHECK(!copy_keeper(ranks_on({a, b}), {a, b, c}));
  CHECK(!copy_keeper(ranks_on({a}), {a}));
  CHECK(!copy_keeper(ranks_on({a}), {}));
  CHECK(!copy_keeper({}, {a, b}));
}

TEST_CASE(
    "model copies: a node fetches the copies it must keep, even if another model is unavailable") {
  FakeHub hub(tiny_model());
  FetchCluster cluster(2, hub.url());
  check_same(cluster.fetch(0, kTiny).wait(), hub.files());
  const uint64_t sent = hub.sent.load();
  FetchNode& keeper = *cluster.nodes[1];
  ModelCopies copies(*keeper.loop, *keeper.fetcher);
  const auto keep = [&](const std::set<std::string>& paths) {
    keeper.loop->must_run([&] { copies.keep(paths); });
  };
  keep({"/no/such/model", kTiny});
  keep({"/no/such/model", kTiny});
  const auto snapshot = cluster.cache(1) / "models--org--tiny" / "snapshots";
  CHECK(comes_true([&] {
    return ModelFetch::find_here(kTiny, false, cluster.settings(1)).value().has_value();
  }));
  CHECK(std::filesystem::exists(snapshot));
  CHECK(hub.sent.load() == sent);  // it came from the other node
  keep({});
  cluster.nodes[1].reset();
}
