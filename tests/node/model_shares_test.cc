// Nodes that keep their share of a model, and copies of others' shares
// (node/fetch/model_fetch_parts.cc).
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "hub/files/range_file.h"
#include "kernels/isa.h"
#include "model/load/open_model.h"
#include "model/load/stored_forms.h"
#include "model/load/weights.h"
#include "node/fetch/local_files.h"
#include "node/fetch_fixture.h"
#include "support/random_model.h"

using namespace lockstep;

namespace {

namespace fs = std::filesystem;

const std::string kModel = "org/tiny";

// A few MB of weights, so that a share is many pieces.
const std::map<std::string, std::string>& random_files() {
  static const std::map<std::string, std::string> files = [] {
    const TemporaryFolder folder;
    write_random_model("llama3-bf16",
                       {{"hidden_size", 256},
                        {"intermediate_size", 512},
                        {"num_hidden_layers", 4},
                        {"num_attention_heads", 8},
                        {"num_key_value_heads", 4},
                        {"head_dim", 32},
                        {"vocab_size", 2048}},
                       folder.path() / "model");
    std::map<std::string, std::string> all;
    for (const auto& entry : fs::directory_iterator(folder.path() / "model")) {
      all[entry.path().filename().string()] = content_of(entry.path());
    }
    return all;
  }();
  return files;
}

uint64_t weights_bytes() {
  uint64_t bytes = 0;
  for (const auto& [name, content] : random_files()) {
    if (name.ends_with(".safetensors")) bytes += content.size();
  }
  return bytes;
}

struct ShareCluster : FetchCluster {
  ShareCluster(int count, const std::string& endpoint) : FetchCluster(0, endpoint) {
    keeps_shares = true;
    nodes.resize(static_cast<size_t>(count));
    for (int i = 0; i < count; ++i) start(i);
    meet();
  }

  NodeId id(int i) const { return nodes[static_cast<size_t>(i)]->identity.id(); }
  RankPlan plan(const std::vector<int>& of, int64_t stages = 1) const {
    RankPlan plan{.ranks = {}, .stages = stages};
    for (const int i : of) plan.ranks.push_back({.node = id(i)});
    return plan;
  }

  std::map<int, FetchedModel> fetch_reads(const RankPlan& plan) {
    std::map<int, FetchDiary> diaries;
    for (size_t i = 0; i < nodes.size(); ++i) {
      const bool has_rank = nodes[i] && bytes_on_plan(plan, id(static_cast<int>(i)));
      if (!has_rank) continue;
      nodes[i]->fetcher->fetch_reads(kModel, plan, diaries[static_cast<int>(i)].events());
    }
    std::map<int, FetchedModel> fetched;
    for (auto& [i, diary] : diaries) {
      const auto outcome = diary.wait();
      REQUIRE_MESSAGE(outcome.ok(), (outcome.ok() ? "" : outcome.error().message));
      fetched[i] = outcome.value();
    }
    return fetched;
  }
  static bool bytes_on_plan(const RankPlan& plan, const NodeId& node) {
    return std::any_of(plan.ranks.begin(), plan.ranks.end(),
                       [&](const RankPart& rank) { return rank.node == node; });
  }

  // Every node checks once; held() shows whether any had something to do.
  void look(const RankPlan& plan) {
    for (const auto& node : nodes) {
      if (!node) continue;
      FetchDiary diary;
      node->fetcher->keep_copies(kModel, plan, true, diary.events());
      const auto outcome = diary.wait();
      REQUIRE_MESSAGE(outcome.ok(), (outcome.ok() ? "" : outcome.error().message));
    }
  }
  // Repeats until nothing changes.
  void settle(const RankPlan& plan) {
    for (int round = 0; round < 8; ++round) {
      const auto before = held();
      look(plan);
      if (held() == before) return;
    }
    FAIL("the copies do not come to rest");
  }

  // By file and piece: the nodes that have it.
  std::map<std::pair<std::string, uint32_t>, std::set<int>> held() const {
    std::map<std::pair<std::string, uint32_t>, std::set<int>> all;
    for (const auto& [name, content] : random_files()) {
      if (!name.ends_with(".safetensors")) continue;
      const PieceCut cut{content.size(), kTestPieceBytes};
      for (uint32_t piece = 0; piece < cut.count(); ++piece) all[{name, piece}];
      for (int i = 0; i < static_cast<int>(nodes.size()); ++i) {
        const fs::path blob = cache(i) / "models--org--tiny" / "blobs" / FakeHub::hash_of(content);
        CHECK(!fs::exists(blob));
        const auto here = RangeFile::pieces_in(PieceStore::partial_path(blob), cut);
        for (uint32_t piece = 0; piece < cut.count(); ++piece) {
          if (here[piece] && nodes[static_cast<size_t>(i)]) all[{name, piece}].insert(i);
        }
      }
    }
    return all;
  }
  double times_on_disks() const {
    double bytes = 0;
    for (const auto& [name, content] : random_files()) {
      const PieceCut cut{content.size(), kTestPieceBytes};
      for (const auto& [piece, those] : held()) {
        if (piece.first == name) {
          bytes += static_cast<double>(cut.range(piece.second).size() * those.size());
        }
      }
    }
    return bytes / static_cast<double>(weights_bytes());
  }
  void check_two_copies() const {
    for (const auto& [piece, those] : held()) CHECK(those.size() >= 2);
  }
  void lose_with_disk(int i) {
    nodes[static_cast<size_t>(i)].reset();
    fs::remove_all(cache(i));
    fs::remove_all(folder.path() / fmt::format("home{}", i));
  }
};

// Loads the parts that a rank reads from a node's disk: an error if any are missing.
void check_loads(const FetchedModel& fetched, const RankPlan& plan, size_t rank) {
  CHECK(fetched.is_in_parts);
  const auto model = open_model(fetched.path.string(), PartialFiles::kAllowed);
  REQUIRE_MESSAGE(model.ok(), (model.ok() ? "" : model.error().message));
  const std::vector<double> shares(plan.ranks.size(), 1);
  const auto alignment = alignment_of(*model.value().source, model.value().config);
  REQUIRE(alignment.ok());
  const auto cut = Cut::make(model.value().config, shares, {alignment.value(), false});
  REQUIRE(cut.ok());
  auto device = open_device({.kernels = available_kernels().back()});
  REQUIRE(device.ok());
  const auto loaded =
      load_weights({*model.value().source,
                    model.value().config,
                    {cut.value(), static_cast<int>(rank), {0, model.value().config.layers}},
                    *device.value()});
  CHECK_MESSAGE(loaded.ok(), (loaded.ok() ? "" : loaded.error().message));
}

void check_all_load(const std::map<int, FetchedModel>& fetched, const RankPlan& plan,
                    const ShareCluster& cluster) {
  for (const auto& [i, model] : fetched) {
    for (size_t rank = 0; rank < plan.ranks.size(); ++rank) {
      if (plan.ranks[rank].node == cluster.id(i)) check_loads(model, plan, rank);
    }
  }
}

}  // namespace

TEST_CASE(
    "model shares: the hub sends all once, two disks keep each piece, and a lost disk is "
    "replaced without the hub") {
  FakeHub hub(random_files());
  ShareCluster cluster(4, hub.url());
  const RankPlan four = cluster.plan({0, 1, 2, 3});
  check_all_load(cluster.fetch_reads(four), four, cluster);
  MESSAGE("the hub sent " << static_cast<double>(hub.sent) / static_cast<double>(hub.total_bytes())
                          << " times the bytes; read by four ranks: " << cluster.times_on_disks());
  CHECK(hub.sent == hub.total_bytes());
  for (const auto& [piece, those] : cluster.held()) CHECK(!those.empty());
  cluster.settle(four);
  cluster.check_two_copies();
  MESSAGE("with copies, on all disks together: " << cluster.times_on_disks());
  CHECK(cluster.times_on_disks() < 2.2);
  CHECK(hub.sent == hub.total_bytes());

  hub.close();
  cluster.lose_with_disk(1);
  const RankPlan three = cluster.plan({0, 2, 3});
  check_all_load(cluster.fetch_reads(three), three, cluster);
  cluster.settle(three);
  cluster.check_two_copies();
  MESSAGE("after a loss, on three disks: " << cluster.times_on_disks());
  CHECK(cluster.times_on_disks() < 2.2);

  // A new node in its place; a second start uses the files that are present.
  cluster.start(1);
  cluster.meet();
  const RankPlan again = cluster.plan({1, 0, 3, 2});
  check_all_load(cluster.fetch_reads(again), again, cluster);
  cluster.settle(again);
  cluster.check_two_copies();
  cluster.start_again();
  const auto before = cluster.held();
  check_all_load(cluster.fetch_reads(again), again, cluster);
  for (const auto& [piece, those] : before) {
    const auto now = cluster.held().at(piece);
    CHECK(std::includes(now.begin(), now.end(), those.begin(), those.end()));
  }
}

TEST_CASE("model shares: stages keep their layers, and nodes without a rank keep copies") {
  FakeHub hub(random_files());
  ShareCluster cluster(4, hub.url());
  const RankPlan two = cluster.plan({0, 1}, 2);
  cluster.fetch_reads(two);
  CHECK(hub.sent == hub.total_bytes());
  const double read = cluster.times_on_disks();
  CHECK(read < 1.1);
  cluster.settle(two);
  cluster.check_two_copies();
  CHECK(cluster.times_on_disks() < 2.2);
  size_t elsewhere = 0;
  for (const auto& [piece, those] : cluster.held()) {
    elsewhere += those.contains(2) || those.contains(3) ? 1 : 0;
  }
  CHECK(elsewhere > cluster.held().size() / 2);
}

TEST_CASE("model shares: one node alone keeps all, and a second one gets a whole copy") {
  FakeHub hub(random_files());
  ShareCluster cluster(2, hub.url());
  const RankPlan one = cluster.plan({0});
  check_all_load(cluster.fetch_reads(one), one, cluster);
  cluster.settle(one);
  cluster.check_two_copies();
  CHECK(hub.sent == hub.total_bytes());
  CHECK(cluster.times_on_disks() == doctest::Approx(2));
}

TEST_CASE("model shares: the table alone suffices for planning, and so does the whole model") {
  FakeHub hub(random_files());
  ShareCluster cluster(2, hub.url());
  FetchDiary table;
  cluster.nodes[0]->fetcher->fetch_table(kModel, table.events());
  const auto planned = table.wait();
  REQUIRE(planned.ok());
  CHECK(planned.value().is_in_parts);
  CHECK(open_model(planned.value().path.string(), PartialFiles::kAllowed).ok());
  CHECK(ModelFetch::table_here(kModel, cluster.settings(0)).value() == planned.value().path);
  CHECK(hub.sent < hub.total_bytes() / 4);
  check_same(cluster.fetch(1, kModel).wait(), random_files());
  CHECK(hub.sent == hub.total_bytes());
  hub.close();
  const RankPlan two = cluster.plan({0, 1});
  FetchDiary reads, whole;
  cluster.nodes[0]->fetcher->fetch_reads(kModel, two, reads.events());
  cluster.nodes[1]->fetcher->fetch_reads(kModel, two, whole.events());
  REQUIRE(reads.wait().ok());
  CHECK(reads.wait().value().is_in_parts);
  CHECK(!whole.wait().value().is_in_parts);
}

TEST_CASE("model shares: a piece that was changed in transit or on a disk is found and repaired") {
  FakeHub hub(random_files());
  ShareCluster cluster(3, hub.url());
  const RankPlan three = cluster.plan({0, 1, 2});
  cluster.fetch_reads(three);
  cluster.settle(three);
  hub.close();
  // Node 0's disk corrupts a piece: requests for it there fail, and the other copy is used.
  const auto held = cluster.held();
  for (const auto& [name, content] : random_files()) {
    if (!name.ends_with(".safetensors")) continue;
    const fs::path blob =
        cluster.cache(0) / "models--org--tiny" / "blobs" / FakeHub::hash_of(content);
    std::fstream file(PieceStore::partial_path(blob),
                      std::ios::in | std::ios::out | std::ios::binary);
    for (const auto& [piece, those] : held) {
      if (piece.first != name || !those.contains(0) || !those.contains(1) || piece.second == 0) {
        continue;
      }
      file.seekp(static_cast<std::streamoff>(piece.second * kTestPieceBytes + 100));
      file.put(static_cast<char>(content[piece.second * kTestPieceBytes + 100] ^ 1));
      break;
    }
  }
  cluster.lose_with_disk(2);
  cluster.start(2);
  cluster.meet();
  const RankPlan again = cluster.plan({2, 1});
  check_all_load(cluster.fetch_reads(again), again, cluster);
}

TEST_CASE("model shares: weights without a table are refused with a reason") {
  FakeHub hub(tiny_model());  // with noise as weights
  ShareCluster cluster(2, hub.url());
  FetchDiary diary;
  cluster.nodes[0]->fetcher->fetch_reads(kModel, cluster.plan({0, 1}), diary.events());
  const auto outcome = diary.wait();
  REQUIRE(!outcome.ok());
  CHECK(outcome.error().message.find("header") != std::string::npos);
}
