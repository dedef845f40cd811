#include "node/fetch/model_fetcher.h"

#include <doctest/doctest.h>

#include "node/fake_hub.h"
#include "node/fetch/piece_stream.h"
#include "node/fetch_fixture.h"

using namespace lockstep;
using namespace std::chrono_literals;

namespace {

std::filesystem::path blob(const FetchCluster& cluster, int node, const std::string& content) {
  return cluster.cache(node) / "models--org--tiny" / "blobs" / FakeHub::hash_of(content);
}

void flip_a_byte(const std::filesystem::path& path, std::streamoff at) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  REQUIRE(file.good());
  file.seekg(at);
  const char c = static_cast<char>(file.get());
  file.seekp(at);
  file.put(static_cast<char>(c ^ 1));
}

double times_fetched(const FakeHub& hub) {
  return static_cast<double>(hub.sent.load()) / static_cast<double>(hub.total_bytes());
}

unsigned fresh_seed() {
  const unsigned seed = std::random_device{}();
  return seed;
}

}  // namespace

TEST_CASE("model fetcher: four nodes that want a model download it from the hub once") {
  FakeHub hub(tiny_model());
  FetchCluster cluster(4, hub.url());
  std::vector<FetchDiary> diaries;
  for (int i = 0; i < 4; ++i) diaries.push_back(cluster.fetch(i, kTiny));
  for (const FetchDiary& diary : diaries) check_same(diary.wait(), hub.files());
  CHECK(times_fetched(hub) >= 1.0);
  CHECK(times_fetched(hub) <= 1.02);
}

TEST_CASE("model fetcher: nodes that start a few milliseconds apart share a download too") {
  const unsigned seed = fresh_seed();
  CAPTURE(seed);
  std::mt19937 random(seed);
  FakeHub hub(tiny_model());
  FetchCluster cluster(4, hub.url());
  std::vector<FetchDiary> diaries;
  for (int i = 0; i < 4; ++i) {
    // The next one starts once this much has arrived.
    const uint64_t some = random() % (hub.total_bytes() / 4) * static_cast<uint64_t>(i);
    CHECK(comes_true([&] { return hub.sent.load() >= some; }));
    diaries.push_back(cluster.fetch(i, kTiny));
  }
  for (const FetchDiary& diary : diaries) check_same(diary.wait(), hub.files());
  CHECK(times_fetched(hub) <= 1.02);
}

TEST_CASE("model fetcher: a model that is already here is returned without asking anyone") {
  FakeHub hub(tiny_model());
  FetchCluster cluster(1, hub.url());
  check_same(cluster.fetch(0, kTiny).wait(), hub.files());
  hub.close();
  check_same(cluster.fetch(0, kTiny).wait(), hub.files());
  write_files(cluster.disk(0) / "models/plain", hub.files());
  const auto fetched = cluster.fetch(0, "/models/plain").wait();
  REQUIRE(fetched.ok());
  CHECK(fetched.value().path == cluster.disk(0) / "models/plain");
  CHECK(cluster.fetch(0, "shape:qwen3-0.6b?layers=2").wait().ok());
}

TEST_CASE("model fetcher: a node that is lost at any moment resumes where it stopped") {
  const unsigned seed = fresh_seed();
  CAPTURE(seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 3; ++round) {
    CAPTURE(round);
    FakeHub hub(tiny_model());
    FetchCluster cluster(4, hub.url());
    std::vector<FetchDiary> diaries;
    for (int i = 0; i < 4; ++i) diaries.push_back(cluster.fetch(i, kTiny));
    const uint64_t some = random() % hub.total_bytes();
    const int victim = static_cast<int>(random() % 4);
    REQUIRE(comes_true([&] { return hub.sent.load() >= some; }));
    cluster.nodes[static_cast<size_t>(victim)].reset();
    for (int i = 0; i < 4; ++i) {
      if (i != victim) check_same(diaries[static_cast<size_t>(i)].wait(), hub.files());
    }
    const uint64_t before = hub.sent.load();
    cluster.start(victim);
    cluster.meet();
    check_same(cluster.fetch(victim, kTiny).wait(), hub.files());
    CHECK(hub.sent.load() == before);  // the others have it
    // It was away for longer than the others wait for it: they fetched its pieces again, including
    // those in progress.
    CHECK(times_fetched(hub) <= 1.4);
  }
}

TEST_CASE("model fetcher: pieces of a failed download are fetched from that node") {
  FakeHub hub(tiny_model());
  FetchCluster cluster(2, hub.url());
  hub.fails_after = hub.total_bytes() / 2;
  CHECK(!cluster.fetch(0, kTiny).wait().ok());
  CHECK(times_fetched(hub) >= 0.5);
  hub.fails_after = UINT64_MAX;
  check_same(cluster.fetch(1, kTiny).wait(), hub.files());
  CHECK(times_fetched(hub) <= 1.02);
}

TEST_CASE("model fetcher: a node that may be back in a moment is asked before the hub") {
  struct WaitingNetwork final : PieceNetwork {
    explicit WaitingNetwork(Peers& peers) : under(peers) {}
    std::vector<NodeId> connected() override {
      return is_waiting ? std::vector<NodeId>() : under.connected();
    }
    bool is_one_expected() override {
      ++asked;
      return is_waiting;
    }
    void open_stream(const NodeId& node, const Channel& channel,
                     std::function<void(Result<FrameConnection>)> ready) override {
      under.open_stream(node, channel, std::move(ready));
    }
    PeersNetwork under;
    std::atomic<bool> is_waiting{true};
    std::atomic<int> asked{0};
  };
  FakeHub hub(tiny_model());
  FetchCluster cluster(2, hub.url());
  hub.fails_after = hub.total_bytes() / 2;
  CHECK(!cluster.fetch(0, kTiny).wait().ok());
  hub.fails_after = UINT64_MAX;
  const uint64_t before = hub.sent;

  FetchNode& node = *cluster.nodes[1];
  WaitingNetwork network(*node.peers);
  ModelFetcher fetcher(*node.loop, network, node.identity.id(), cluster.settings(1));
  FetchDiary diary;
  fetcher.fetch(kTiny, diary.events());
  // After the few initial requests for the list, each one is for a piece.
  REQUIRE(comes_true([&] { return network.asked > 100; }));
  CHECK(hub.sent == before);
  network.is_waiting = false;
  check_same(diary.wait(), hub.files());
  CHECK(times_fetched(hub) <= 1.02);
}

TEST_CASE("model fetcher: with the hub down the model comes from the node that has it") {
  FakeHub hub(tiny_model());
  FetchCluster cluster(4, hub.url());
  check_same(cluster.fetch(2, kTiny).wait(), hub.files());
  const uint64_t sent = hub.sent.load();
  hub.close();
  std::vector<FetchDiary> diaries;
  for (const int i : {0, 1, 3}) diaries.push_back(cluster.fetch(i, kTiny));
  for (const FetchDiary& diary : diaries) check_same(diary.wait(), hub.files());
  CHECK(hub.sent.load() == sent);
}

TEST_CASE("model fetcher: a hub that is lost midway is named once nothing else helps") {
  FakeHub hub(tiny_model());
  FetchCluster cluster(2, hub.url());
  cluster.patience = 2s;
  cluster.start_again();
  const FetchDiary a = cluster.fetch(0, kTiny);
  const FetchDiary b = cluster.fetch(1, kTiny);
  REQUIRE(comes_true([&] { return hub.sent.load() > 0; }));
  hub.status = 503;
  for (const FetchDiary& diary : {a, b}) {
    const auto outcome = diary.wait();
    if (outcome.ok()) continue;  // it was faster
    CHECK_MESSAGE(outcome.error().message.find("503") != std::string::npos,
                  outcome.error().message);
  }
  hub.status = 200;
  check_same(cluster.fetch(0, kTiny).wait(), hub.files());
  check_same(cluster.fetch(1, kTiny).wait(), hub.files());
  CHECK(times_fetched(hub) <= 1.02);
}

TEST_CASE("model fetcher: a node with a changed disk does no harm while the hub is available") {
  FakeHub hub(tiny_model());
  FetchCluster cluster(3, hub.url());
  check_same(cluster.fetch(0, kTiny).wait(), hub.files());
  flip_a_byte(blob(cluster, 0, hub.files().at("model-00001-of-00002.safetensors")), 500'000);
  const FetchDiary b = cluster.fetch(1, kTiny);
  const FetchDiary c = cluster.fetch(2, kTiny);
  check_same(b.wait(), hub.files());
  check_same(c.wait(), hub.files());
}

TEST_CASE("model fetcher: a corrupt piece on a disk is found, and repaired from another node") {
  FakeHub hub(tiny_model());
  FetchCluster cluster(3, hub.url());
  check_same(cluster.fetch(0, kTiny).wait(), hub.files());
  const std::string& content = hub.files().at("model-00001-of-00002.safetensors");
  SUBCASE("another node has a good piece") {
    check_same(cluster.fetch(1, kTiny).wait(), hub.files());
    hub.close();
    flip_a_byte(blob(cluster, 0, content), 500'000);
    check_same(cluster.fetch(2, kTiny).wait(), hub.files());
  }
  SUBCASE("no node has") {
    hub.close();
    flip_a_byte(blob(cluster, 0, content), 500'000);
    const auto outcome = cluster.fetch(2, kTiny).wait();
    REQUIRE(!outcome.ok());
    CHECK_MESSAGE(outcome.error().code == ErrorCode::kCorrupt, outcome.error().message);
  }
}

TEST_CASE("model fetcher: a lying hub is detected") {
  FakeHub hub(tiny_model());
  FetchCluster cluster(2, hub.url());
  SUBCASE("about a file's length, now and then") {
    hub.wrong_totals = 1;
    const FetchDiary a = cluster.fetch(0, kTiny);
    const auto outcome = a.wait();
    if (!outcome.ok()) CHECK(outcome.error().code == ErrorCode::kCorrupt);
    check_same(cluster.fetch(1, kTiny).wait(), hub.files());
  }
  SUBCASE("by sending too much") {
    hub.too_long = 1;
    const auto outcome = cluster.fetch(0, kTiny).wait();
    if (!outcome.ok()) CHECK(outcome.error().code == ErrorCode::kCorrupt);
    check_same(cluster.fetch(1, kTiny).wait(), hub.files());
  }
  SUBCASE("in its list") {
    hub.list_lie = 5;
    const FetchDiary a = cluster.fetch(0, kTiny);
    const FetchDiary b = cluster.fetch(1, kTiny);
    CHECK(!a.wait().ok());
    CHECK(!b.wait().ok());
  }
  SUBCASE("by a wrong byte that both nodes share") {
    hub.flipped = 1;
    const FetchDiary a = cluster.fetch(0, kTiny);
    const FetchDiary b = cluster.fetch(1, kTiny);
    check_same(a.wait(), hub.files());
    check_same(b.wait(), hub.files());
  }
}

TEST_CASE("model fetcher: refusals of the hub are reported as by pull") {
  FakeHub hub(tiny_model());
  FetchCluster cluster(1, hub.url());
  const auto message = [&](int status) {
    hub.status = status;
    const auto outcome = cluster.fetch(0, kTiny).wait();
    REQUIRE(!outcome.ok());
    return outcome.error().message;
  };
  CHECK(message(401).find("HF_TOKEN") != std::string::npos);
  CHECK(message(404).find("there is no model org/tiny") != std::string::npos);
  CHECK(message(429).find("429") != std::string::npos);
  const auto nonsense = cluster.fetch(0, "no model of anything").wait();
  REQUIRE(!nonsense.ok());
  CHECK(nonsense.error().code == ErrorCode::kInvalidArgument);
}

TEST_CASE("model fetcher: the small files come first, and the rest when asked for") {
  FakeHub hub(tiny_model());
  FetchCluster cluster(2, hub.url());
  const auto small = cluster.fetch_small(0, kTiny).wait();
  REQUIRE_MESSAGE(small.ok(), (small.ok() ? "" : small.error().message));
  CHECK(!small.value().has_weights);
  CHECK(content_of(small.value().path / "tokenizer.json") == hub.files().at("tokenizer.json"));
  CHECK(!std::filesystem::exists(small.value().path / "model-00001-of-00002.safetensors"));
  CHECK(times_fetched(hub) < 0.05);
  CHECK(cluster.fetch_small(0, kTiny).wait().ok());  // at once now
  const FetchDiary first = cluster.fetch(0, kTiny);
  const FetchDiary second = cluster.fetch_small(0, kTiny);
  check_same(first.wait(), hub.files());
  CHECK(second.wait().ok());
  CHECK(times_fetched(hub) <= 1.02);
}

TEST_CASE("model fetcher: a cancelled fetch ends, and can be resumed") {
  FakeHub hub(tiny_model());
  FetchCluster cluster(1, hub.url());
  FetchDiary cancelled;
  auto& fetcher = *cluster.nodes[0]->fetcher;
  const uint64_t number = fetcher.fetch(kTiny, cancelled.events());
  fetcher.cancel(number);
  check_same(cluster.fetch(0, kTiny).wait(), hub.files());
  CHECK(!cancelled.is_done());
}

TEST_CASE("model fetcher: a folder that only another node has is copied from there") {
  const auto files = tiny_model();
  FetchCluster cluster(3);
  const auto folder = cluster.disk(1) / "models/my model";
  const std::string path = "/models/my model";
  write_files(folder, files);
  write_files(folder, {{"secret.txt", "not a part of the model"}});
  std::filesystem::create_symlink("/etc/hostname", folder / "vocab.json");
  CHECK(cluster.fetch(0, path).wait().error().code == ErrorCode::kNotFound);  // not offered
  cluster.nodes[1]->fetcher->offer(path);
  const FetchDiary a = cluster.fetch(0, path);
  const FetchDiary c = cluster.fetch(2, path);
  for (const FetchDiary& diary : {a, c}) {
    const auto fetched = diary.wait();
    check_same(fetched, files);
    CHECK(!std::filesystem::exists(fetched.value().path / "secret.txt"));
    CHECK(!std::filesystem::exists(fetched.value().path / "vocab.json"));
  }
  // The copy suffices once the others are gone.
  const auto copy = a.wait().value().path;
  cluster.nodes[1].reset();
  cluster.nodes[2].reset();
  cluster.meet();
  const auto again = cluster.fetch(0, path).wait();
  REQUIRE(again.ok());
  CHECK(again.value().path == copy);
}

TEST_CASE("model fetcher: a copy follows changes of its source folder") {
  auto files = tiny_model();
  FetchCluster cluster(3);
  const auto folder = cluster.disk(1) / "models/changing";
  write_files(folder, files);
  cluster.nodes[1]->fetcher->offer("/models/changing");
  const auto first = cluster.fetch(0, "/models/changing").wait();
  check_same(first, files);
  check_same(cluster.fetch(2, "/models/changing").wait(), files);  // and keeps an old copy
  files["config.json"] = "{\"model_type\":\"other\"}";
  write_files(folder, files);
  const auto second = cluster.fetch(0, "/models/changing").wait();
  check_same(second, files);
  CHECK(first.value().commit != second.value().commit);
}

TEST_CASE("model fetcher: pieces of the real size are exchanged too") {
  const std::map<std::string, std::string> files{
      {"config.json", "{}"}, {"model.safetensors", random_content((20 << 20) + 7, 6)}};
  FetchCluster cluster(3);
  cluster.piece_bytes = kFilePieceBytes;
  cluster.start_again();
  write_files(cluster.disk(0) / "models/large", files);
  cluster.nodes[0]->fetcher->offer("/models/large");
  const FetchDiary b = cluster.fetch(1, "/models/large");
  const FetchDiary c = cluster.fetch(2, "/models/large");
  check_same(b.wait(), files);
  check_same(c.wait(), files);
}

TEST_CASE("model fetcher: nodes without access to the hub get a model from those that have it") {
  FakeHub hub(tiny_model());
  FetchCluster cluster(2, hub.url());
  check_same(cluster.fetch(0, kTiny).wait(), hub.files());
  const uint64_t sent = hub.sent.load();
  cluster.is_offline = true;
  cluster.start_again();
  check_same(cluster.fetch(1, kTiny).wait(), hub.files());
  CHECK(hub.sent.load() == sent);
  const auto outcome = cluster.fetch(1, "org/other").wait();
  REQUIRE(!outcome.ok());
  CHECK_MESSAGE(outcome.error().message.find("HF_HUB_OFFLINE") != std::string::npos,
                outcome.error().message);
}

TEST_CASE("model fetcher: a GGUF file of another node is copied with its other parts") {
  const std::map<std::string, std::string> files{
      {"tiny-00001-of-00002.gguf", random_content(200'000, 4)},
      {"tiny-00002-of-00002.gguf", random_content(100'000, 5)}};
  FetchCluster cluster(2);
  write_files(cluster.disk(1) / "models", files);
  write_files(cluster.disk(1) / "models", {{"other.gguf", "another model"}});
  const std::string path = "/models/tiny-00001-of-00002.gguf";
  cluster.nodes[1]->fetcher->offer(path);
  const auto fetched = cluster.fetch_small(0, path).wait();
  REQUIRE_MESSAGE(fetched.ok(), (fetched.ok() ? "" : fetched.error().message));
  CHECK(fetched.value().path.filename() == "tiny-00001-of-00002.gguf");
  for (const auto& [name, content] : files) {
    CHECK(content_of(fetched.value().path.parent_path() / name) == content);
  }
  CHECK(!std::filesystem::exists(fetched.value().path.parent_path() / "other.gguf"));
}

TEST_CASE("model fetcher: different folders with the same path are told apart") {
  auto files = tiny_model();
  FetchCluster cluster(3);
  write_files(cluster.disk(0) / "models/tiny", files);
  files["model-00002-of-00002.safetensors"][7] ^= 1;
  write_files(cluster.disk(1) / "models/tiny", files);
  for (const int i : {0, 1}) {
    cluster.nodes[static_cast<size_t>(i)]->fetcher->offer("/models/tiny");
  }
  const auto outcome = cluster.fetch(2, "/models/tiny").wait();
  REQUIRE(!outcome.ok());
  CHECK_MESSAGE(
      outcome.error().message.find("is not the same on the nodes 'n") != std::string::npos,
      outcome.error().message);
}

TEST_CASE("model fetcher: a member that asks for files outside a model gets nothing") {
  FakeHub hub(tiny_model());
  FetchCluster cluster(2, hub.url());
  check_same(cluster.fetch(0, kTiny).wait(), hub.files());
  write_files(cluster.disk(0) / "etc", {{"passwd", "secret"}, {"config.json", "{}"}});
  FetchNode& asker = *cluster.nodes[1];
  const NodeId owner = cluster.nodes[0]->identity.id();
  const auto open = [&] {
    auto stream = PieceStream::open(*asker.loop, *asker.network, owner, {}, nullptr);
    REQUIRE(stream.ok());
    return std::move(stream.value());
  };
  const auto stream = open();
  const PieceAsk good{.question = PieceQuestion::kPiece,
                      .model = kTiny,
                      .commit = FakeHub::kCommit,
                      .file_hash = FakeHub::hash_of(hub.files().at("tokenizer.json")),
                      .piece = 0,
                      .piece_bytes = kTestPieceBytes};
  const auto outcome = [&](auto change) {
    PieceAsk ask = good;
    change(ask);
    const auto reply = stream->ask(ask, kPieceBodyBytesMax);
    REQUIRE_MESSAGE(reply.ok(), (reply.ok() ? "" : reply.error().message));
    return reply.value().answer.outcome;
  };
  CHECK(outcome([](PieceAsk&) {}) == PieceOutcome::kYes);
  CHECK(outcome([](PieceAsk& ask) { ask.piece = 1'000'000; }) == PieceOutcome::kNo);
  CHECK(outcome([](PieceAsk& ask) { ask.piece = UINT32_MAX; }) == PieceOutcome::kNo);
  CHECK(outcome([](PieceAsk& ask) { ask.file_hash = std::string(64, '0'); }) == PieceOutcome::kNo);
  CHECK(outcome([](PieceAsk& ask) { ask.file_hash = ""; }) == PieceOutcome::kNo);
  CHECK(outcome([](PieceAsk& ask) { ask.commit = std::string(40, '0'); }) == PieceOutcome::kNo);
  // The shorter the pieces, the longer the list, so only this node's own piece size counts.
  for (const PieceQuestion question : {PieceQuestion::kHoldings, PieceQuestion::kPiece}) {
    CHECK(outcome([&](PieceAsk& ask) { ask.question = question; }) == PieceOutcome::kYes);
    CHECK(outcome([&](PieceAsk& ask) {
            ask.question = question;
            ask.piece_bytes = 1;
          }) == PieceOutcome::kNo);
  }
  for (const char* model : {"/etc", "/etc/passwd", "../../etc", "org/../../etc", "org/tiny/../x",
                            "org/tiny@../../x", "/", "shape:qwen3-0.6b", "org/other"}) {
    CAPTURE(model);
    CHECK(outcome([&](PieceAsk& ask) { ask.model = model; }) == PieceOutcome::kNo);
    CHECK(outcome([&](PieceAsk& ask) {
            ask.model = model;
            ask.question = PieceQuestion::kList;
          }) == PieceOutcome::kNo);
  }
  // An invalid request closes the stream, and others still work.
  CHECK(!stream->ask({.question = PieceQuestion::kList, .model = "", .piece_bytes = 1}, 1000).ok());
  CHECK(open()->ask(good, kPieceBodyBytesMax).ok());
  CHECK(open()->ask(good, 10).error().code == ErrorCode::kCorrupt);  // beyond the limit
}
