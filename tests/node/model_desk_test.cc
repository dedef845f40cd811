// The desk for models on disks: pulls from a hub that stalls, lists and removal over the cluster.
#include "node/disks/model_desk.h"

#include <doctest/doctest.h>

#include "node/disks/alone_desk.h"
#include "node/disks/disk_messages.h"
#include "node/fetch_fixture.h"

using namespace lockstep;
using namespace std::chrono_literals;

namespace {

// Two nodes with a desk each.
struct Desks {
  explicit Desks(const std::string& hub, ModelDeskTimes times = {}) : cluster(2, hub) {
    for (int i = 0; i < 2; ++i) {
      FetchNode& node = *cluster.nodes[static_cast<size_t>(i)];
      const FetchSettings settings = cluster.settings(i);
      desks[i] = std::make_unique<ModelDesk>(ModelDesk::Surroundings{
          .loop = *node.loop,
          .network = *node.network,
          .fetcher = *node.fetcher,
          .self = node.identity.id(),
          .hub = settings.hub,
          .home = settings.home,
          .is_used = [this](const ModelId& id) { return is_read_from(used, id); },
          .times = times});
      node.loop->must_run([&node, desk = desks[i].get()] {
        node.on_other_stream = [desk](const Channel& channel, FrameConnection connection) {
          CHECK(channel.kind == kDiskChannel);
          desk->on_stream(std::move(connection));
        };
      });
    }
  }
  ~Desks() {
    for (auto& node : cluster.nodes) {
      node->loop->must_run([&node] { node->on_other_stream = nullptr; });
    }
    for (auto& desk : desks) desk.reset();
  }
  // Node i answers no question from now on, but its connection stays.
  void silence(int i) {
    FetchNode& node = *cluster.nodes[static_cast<size_t>(i)];
    node.loop->must_run([this, &node] {
      node.on_other_stream = [this](const Channel&, FrameConnection connection) {
        kept.push_back(std::move(connection));
      };
    });
  }
  NodeId id(int i) const { return cluster.nodes[static_cast<size_t>(i)]->identity.id(); }

  FetchCluster cluster;
  std::string used;                   // the path of a model that is loaded
  std::vector<FrameConnection> kept;  // of a silenced node, on its loop
  std::unique_ptr<ModelDesk> desks[2];
};

ModelPull only_pull(ModelDesk& desk) {
  const auto pulls = desk.pulls().list();
  return pulls.size() == 1 ? pulls.front() : ModelPull{};
}

bool ends_as(ModelDesk& desk, PullPhase phase) {
  return comes_true([&] { return only_pull(desk).phase == phase; });
}

FetchSettings alone_settings(const TemporaryFolder& folder, const FakeHub& hub) {
  FetchSettings settings;
  settings.hub.endpoint = hub.url();
  settings.hub.cache = folder.path() / "cache";
  settings.home = folder.path() / "home";
  settings.piece_bytes = kTestPieceBytes;
  settings.retries = 1;
  return settings;
}

}  // namespace

TEST_CASE("a pull goes on without its caller, and says where the bytes came from") {
  FakeHub hub(tiny_model());
  TemporaryFolder folder;
  AloneDesk alone(alone_settings(folder, hub), {});
  ModelDesk& desk = alone.desk();
  REQUIRE(desk.pulls().start(kTiny).ok());
  REQUIRE(desk.pulls().start(kTiny).ok());  // the same one
  REQUIRE(ends_as(desk, PullPhase::kDone));
  const ModelPull pull = only_pull(desk);
  CHECK(pull.model == kTiny);
  CHECK(pull.source == "hub");
  CHECK(pull.whole_bytes == hub.total_bytes());
  CHECK(pull.read_bytes == hub.total_bytes());
  CHECK(!pull.seconds_left);
  CHECK(desk.pulls().list(ModelPulls::Clock::now() + 61s).empty());
  const auto disks = desk.disks();
  REQUIRE(disks.size() == 1);
  REQUIRE(disks[0].disk.ok());
  const DiskReport& disk = disks[0].disk.value();
  REQUIRE(disk.models.size() == 1);
  CHECK(disk.models[0].name == kTiny);
  CHECK(disk.models[0].is_complete);
  CHECK(disk.models[0].is_removable);
  CHECK(disk.models[0].bytes == hub.total_bytes());
  CHECK(disk.free_bytes.value_or(0) > 0);
  // Nothing comes from elsewhere when all of it is there.
  REQUIRE(desk.pulls().start(kTiny).ok());
  REQUIRE(comes_true([&] { return only_pull(desk).source == "disk"; }));
}

TEST_CASE("the rate of a pull falls to 0 when the hub stalls, and rises when it goes on") {
  FakeHub hub(tiny_model());
  hub.holds_after = 200'000;
  TemporaryFolder folder;
  AloneDesk alone(alone_settings(folder, hub), {});
  ModelDesk& desk = alone.desk();
  REQUIRE(desk.pulls().start(kTiny).ok());
  REQUIRE(comes_true([&] { return only_pull(desk).read_bytes >= 180'000; }));
  const ModelPull moving = only_pull(desk);
  CHECK(moving.phase == PullPhase::kDownloading);
  CHECK(moving.bytes_s > 0);
  CHECK(moving.seconds_left.value_or(0) > 0);
  const auto later = desk.pulls().list(ModelPulls::Clock::now() + 10s);
  REQUIRE(later.size() == 1);
  CHECK(later[0].bytes_s == 0);
  CHECK(!later[0].seconds_left);
  CHECK(later[0].read_bytes == moving.read_bytes);
  CHECK(later[0].phase == PullPhase::kDownloading);
  hub.release();
  CHECK(ends_as(desk, PullPhase::kDone));
}

TEST_CASE("a pull that was stopped keeps what has come and goes on from there") {
  FakeHub hub(tiny_model());
  hub.holds_after = 600'000;
  TemporaryFolder folder;
  AloneDesk alone(alone_settings(folder, hub), {});
  ModelDesk& desk = alone.desk();
  REQUIRE(desk.pulls().start(kTiny).ok());
  REQUIRE(comes_true([&] { return only_pull(desk).read_bytes >= 500'000; }));
  REQUIRE(desk.pulls().stop(kTiny).ok());
  CHECK(desk.pulls().list().empty());
  const Status again = desk.pulls().stop(kTiny);
  CHECK(!again.ok());
  CHECK(again.error().code == ErrorCode::kNotFound);
  hub.release();
  const uint64_t sent = hub.sent;
  REQUIRE(desk.pulls().start(kTiny).ok());
  REQUIRE(ends_as(desk, PullPhase::kDone));
  CHECK(hub.sent - sent < hub.total_bytes() - 400'000);
}

TEST_CASE("a pull that fails stays in the list with the reason, and can be started again") {
  FakeHub hub(tiny_model());
  hub.status = 404;
  TemporaryFolder folder;
  AloneDesk alone(alone_settings(folder, hub), {});
  ModelDesk& desk = alone.desk();
  REQUIRE(desk.pulls().start(kTiny).ok());
  REQUIRE(ends_as(desk, PullPhase::kFailed));
  CHECK(only_pull(desk).sentence.find("org/tiny") != std::string::npos);
  hub.status = 200;
  REQUIRE(desk.pulls().start(kTiny).ok());
  CHECK(ends_as(desk, PullPhase::kDone));
}

TEST_CASE("names that are no models of a hub are not pulled, and pulls are bounded") {
  FakeHub hub(tiny_model());
  hub.holds_after = 0;
  TemporaryFolder folder;
  AloneDesk alone(alone_settings(folder, hub), {});
  ModelPulls& pulls = alone.desk().pulls();
  for (const char* name : {"", "tiny", "/etc/passwd", "org/../x", "org/tiny@../a", "a/b/c/d"}) {
    const Status refused = pulls.start(name);
    CHECK_MESSAGE(!refused.ok(), name);
    if (!refused.ok()) CHECK(refused.error().code == ErrorCode::kInvalidArgument);
  }
  hub.status = 503;  // all wait for the hub
  for (size_t i = 0; i < ModelPulls::kRunningMax; ++i) {
    REQUIRE(pulls.start(fmt::format("org/m{}", i)).ok());
  }
  const auto list = pulls.list();
  CHECK(list.size() == ModelPulls::kRunningMax);
  CHECK(list.front().model == "org/m0");
  // Only a stopped one makes room; those that fail meanwhile end on their own.
  const Status more = pulls.start("org/more");
  if (!more.ok()) CHECK(more.error().code == ErrorCode::kExhausted);
  CHECK(comes_true([&] {
    const auto all = pulls.list();
    return std::all_of(all.begin(), all.end(),
                       [](const ModelPull& one) { return one.phase == PullPhase::kFailed; });
  }));
  CHECK(pulls.list().size() <= ModelPulls::kEndedMax);
}

TEST_CASE("a pull from a neighbour says so, and each node lists the other's disk") {
  FakeHub hub(tiny_model());
  Desks desks(hub.url());
  check_same(desks.cluster.fetch(0, kTiny).wait(), hub.files());
  hub.close();
  REQUIRE(desks.desks[1]->pulls().start(kTiny).ok());
  REQUIRE(ends_as(*desks.desks[1], PullPhase::kDone));
  CHECK(only_pull(*desks.desks[1]).source == "neighbour");
  for (int i = 0; i < 2; ++i) {
    const auto disks = desks.desks[i]->disks();
    REQUIRE(disks.size() == 2);
    CHECK(disks[0].node == desks.id(i));
    CHECK(disks[1].node == desks.id(1 - i));
    for (const auto& one : disks) {
      REQUIRE(one.disk.ok());
      REQUIRE(one.disk.value().models.size() == 1);
      CHECK(one.disk.value().models[0].name == kTiny);
    }
  }
}

TEST_CASE("a node that does not answer is in the list with a sentence, within the deadline") {
  FakeHub hub(tiny_model());
  Desks desks(hub.url(), {.list = 300ms, .remove = 300ms});
  desks.silence(1);
  const auto disks = desks.desks[0]->disks();
  REQUIRE(disks.size() == 2);
  CHECK(disks[0].disk.ok());
  REQUIRE(!disks[1].disk.ok());
  CHECK(disks[1].disk.error().code == ErrorCode::kTimeout);
  CHECK(disks[1].disk.error().message.find("not answered") != std::string::npos);
  const auto removed = desks.desks[0]->remove(kTiny, desks.id(1));
  REQUIRE(!removed.ok());
  CHECK(removed.error().code == ErrorCode::kTimeout);
  desks.cluster.nodes[1]->loop->must_run([&] { desks.kept.clear(); });
}

TEST_CASE("a model is removed here or there, unless it is loaded or being pulled") {
  FakeHub hub(tiny_model());
  Desks desks(hub.url());
  for (int i = 0; i < 2; ++i) check_same(desks.cluster.fetch(i, kTiny).wait(), hub.files());
  for (auto& node : desks.cluster.nodes) node->loop->must_run([&] { desks.used = "org/tiny"; });
  for (int i = 0; i < 2; ++i) {
    const auto refused = desks.desks[0]->remove(kTiny, desks.id(i));
    REQUIRE(!refused.ok());
    CHECK(refused.error().code == ErrorCode::kInvalidArgument);
    CHECK(refused.error().message.find("unload") != std::string::npos);
  }
  for (auto& node : desks.cluster.nodes) node->loop->must_run([&] { desks.used = "org/other"; });
  const auto invalid = desks.desks[0]->remove("../../etc", desks.id(1));
  REQUIRE(!invalid.ok());
  CHECK(invalid.error().code == ErrorCode::kInvalidArgument);
  const auto removed = desks.desks[0]->remove(kTiny, desks.id(1));
  REQUIRE_MESSAGE(removed.ok(), (removed.ok() ? "" : removed.error().message));
  CHECK(removed.value() >= hub.total_bytes());
  CHECK(!std::filesystem::exists(desks.cluster.cache(1) / "models--org--tiny"));
  CHECK(std::filesystem::exists(desks.cluster.cache(0) / "models--org--tiny"));
  const auto again = desks.desks[0]->remove(kTiny, desks.id(1));
  REQUIRE(!again.ok());
  CHECK(again.error().code == ErrorCode::kNotFound);
  hub.holds_after = 0;
  REQUIRE(desks.desks[0]->remove(kTiny, desks.id(0)).ok());
  REQUIRE(desks.desks[0]->pulls().start(kTiny).ok());
  const auto busy = desks.desks[0]->remove(kTiny, desks.id(0));
  REQUIRE(!busy.ok());
  CHECK(busy.error().message.find("downloaded") != std::string::npos);
}

TEST_CASE("a stranger to the protocol is closed, and only so many ask at a time") {
  FakeHub hub(tiny_model());
  Desks desks(hub.url());
  std::atomic<int> closed{0};
  FetchNode& node = *desks.cluster.nodes[0];
  const Channel channel{.kind = kDiskChannel, .purpose = {}};
  std::vector<FrameConnection> open;  // on the loop
  const auto ask = [&](const std::string& frame) {
    node.network->open_stream(desks.id(1), channel, [&, frame](Result<FrameConnection> ready) {
      if (!ready.ok()) return;
      ready.value().set_events(
          {.on_frame = [](std::string) {}, .on_close = [&](Error) { ++closed; }, .on_drained = {}});
      if (!frame.empty()) ready.value().send(frame);
      open.push_back(ready.value());
    });
  };
  for (const char* frame : {"nonsense", "{}", R"({"ask":"sudo"})"}) ask(frame);
  CHECK(comes_true([&] { return closed == 3; }));
  closed = 0;
  for (size_t i = 0; i < ModelDesk::kAskersMax + 1; ++i) ask("");
  CHECK(comes_true([&] { return closed == 1; }));
  node.loop->must_run([&] {
    for (FrameConnection& one : open) one.close();
    open.clear();
  });
}

TEST_CASE("a loaded model is recognised however it was named") {
  const ModelId id = parse_model_id("org/tiny").value();
  CHECK(is_read_from("org/tiny", id));
  CHECK(is_read_from("org/tiny@v2", id));
  CHECK(is_read_from("org/tiny/file.gguf", id));
  const std::string commit(40, 'a');
  CHECK(is_read_from("/cache/models--org--tiny/snapshots/" + commit, id));
  CHECK(!is_read_from("/models/tiny", id));
  CHECK(!is_read_from("org/tiny2", id));
  const ModelId second = parse_model_id("org/tiny@v2").value();
  CHECK(is_read_from("org/tiny@v2", second));
  CHECK(!is_read_from("org/tiny", second));
}
