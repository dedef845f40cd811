// Nodes in one test process that fetch models from each other: each with peers on loopback, a cache
// and a home folder.
#pragma once

#include <doctest/doctest.h>

#include <condition_variable>
#include <fstream>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "cluster/cluster_fixture.h"
#include "node/fake_hub.h"
#include "node/fetch/model_fetcher.h"

namespace lockstep {

inline constexpr uint64_t kTestPieceBytes = 16 << 10;
inline constexpr std::chrono::seconds kFetchPatience{120};  // for a busy machine

// The events of one fetch.
class FetchDiary {
 public:
  ModelFetcher::Events events() {
    return {.on_progress = [](const FetchProgress&) {},
            .on_done =
                [state = state_](const Result<FetchedModel>& outcome) {
                  const std::lock_guard lock(state->mutex);
                  state->outcome = outcome;
                  state->changed.notify_all();
                }};
  }
  bool is_done() const {
    const std::lock_guard lock(state_->mutex);
    return state_->outcome.has_value();
  }
  Result<FetchedModel> wait() const {
    std::unique_lock lock(state_->mutex);
    if (state_->changed.wait_for(lock, kFetchPatience, [&] { return state_->outcome.has_value(); }))
      return *state_->outcome;
    return Error{ErrorCode::kTimeout, "the fetch did not end"};
  }

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    std::optional<Result<FetchedModel>> outcome;
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

struct FetchNode {
  FetchNode(const Identity& own, std::vector<NetAddress> join, FetchSettings settings)
      : identity(own) {
    loop = EventLoop::start();
    Peers::Events events;
    events.on_stream = [this](const NodeId& from, const Channel& channel,
                              FrameConnection connection) {
      if (on_other_stream && channel.kind != kPieceChannel) {
        return on_other_stream(channel, std::move(connection));
      }
      if (!fetcher_on_loop) return connection.close();
      fetcher_on_loop->on_stream(from, channel, std::move(connection));
    };
    auto started = Peers::start(*loop, identity, local_options(std::move(join)), std::move(events));
    REQUIRE_MESSAGE(started.ok(), (started.ok() ? "" : started.error().message));
    peers = std::move(started.value());
    network = std::make_unique<PeersNetwork>(*peers);
    fetcher = std::make_unique<ModelFetcher>(*loop, *network, identity.id(), std::move(settings));
    loop->must_run([this] { fetcher_on_loop = fetcher.get(); });
  }
  ~FetchNode() {
    loop->must_run([this] { fetcher_on_loop = nullptr; });
    fetcher.reset();
    network.reset();
    peers.reset();
  }
  FetchNode(const FetchNode&) = delete;
  FetchNode& operator=(const FetchNode&) = delete;

  NetAddress address() const { return {"127.0.0.1", peers->port()}; }

  Identity identity;
  std::unique_ptr<EventLoop> loop;
  std::unique_ptr<Peers> peers;
  std::unique_ptr<PeersNetwork> network;
  std::unique_ptr<ModelFetcher> fetcher;
  ModelFetcher* fetcher_on_loop = nullptr;  // used on the loop's thread, as what follows
  std::function<void(const Channel&, FrameConnection)> on_other_stream;
};

// A number of nodes that know each other.
struct FetchCluster {
  explicit FetchCluster(int count, std::string endpoint = "http://127.0.0.1:1")
      : hub(std::move(endpoint)), nodes(static_cast<size_t>(count)) {
    for (int i = 0; i < count; ++i) start(i);
    meet();
  }

  FetchSettings settings(int i) const {
    FetchSettings chosen;
    chosen.hub.endpoint = hub;
    chosen.hub.cache = cache(i);
    chosen.hub.is_offline = is_offline;
    chosen.home = folder.path() / fmt::format("home{}", i);
    chosen.root = disk(i);
    chosen.piece_bytes = piece_bytes;
    chosen.keeps_shares = keeps_shares;
    chosen.connections = 3;
    chosen.retries = 1;
    chosen.patience = patience;
    chosen.times.refresh = std::chrono::milliseconds(50);
    return chosen;
  }
  // The root of node i's file system.
  std::filesystem::path disk(int i) const { return folder.path() / fmt::format("disk{}", i); }
  std::filesystem::path cache(int i) const { return folder.path() / fmt::format("cache{}", i); }

  void start(int i) {
    const std::string name = fmt::format("n{}", i);
    auto identity = std::filesystem::exists(folder.path() / name)
                        ? open_identity(folder, name)
                        : member_identity(folder, name, key);
    std::vector<NetAddress> join;
    for (const auto& node : nodes) {
      if (node) join.push_back(node->address());
    }
    nodes[static_cast<size_t>(i)] = std::make_unique<FetchNode>(identity, join, settings(i));
  }
  void meet() {
    const auto present = static_cast<size_t>(
        std::count_if(nodes.begin(), nodes.end(), [](const auto& node) { return bool(node); }));
    for (const auto& node : nodes) {
      if (!node) continue;
      REQUIRE(comes_true([&] { return node->network->connected().size() == present - 1; }));
    }
  }
  void start_again() {
    for (size_t i = 0; i < nodes.size(); ++i) {
      nodes[i].reset();
      start(static_cast<int>(i));
    }
    meet();
  }
  FetchDiary fetch(int i, const std::string& model) {
    FetchDiary diary;
    nodes[static_cast<size_t>(i)]->fetcher->fetch(model, diary.events());
    return diary;
  }
  FetchDiary fetch_small(int i, const std::string& model) {
    FetchDiary diary;
    nodes[static_cast<size_t>(i)]->fetcher->fetch_small(model, diary.events());
    return diary;
  }

  TemporaryFolder folder;
  ClusterKey key = new_cluster();
  std::string hub;
  bool is_offline = false;
  bool keeps_shares = false;
  uint64_t piece_bytes = kTestPieceBytes;
  std::chrono::seconds patience{30};
  std::vector<std::unique_ptr<FetchNode>> nodes;
};

inline std::string content_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  content << file.rdbuf();
  return content.str();
}

inline std::string random_content(size_t size, unsigned seed) {
  std::mt19937 random(seed);
  std::string content(size, 0);
  for (char& c : content) c = static_cast<char>(random());
  return content;
}

inline std::map<std::string, std::string> tiny_model() {
  return {{"config.json", "{\"model_type\":\"tiny\"}"},
          {"tokenizer.json", random_content(20'000, 1)},
          {"model-00001-of-00002.safetensors", random_content(1'000'000, 2)},
          {"model-00002-of-00002.safetensors", random_content(300'001, 3)}};
}

inline void check_same(const Result<FetchedModel>& fetched,
                       const std::map<std::string, std::string>& files) {
  REQUIRE_MESSAGE(fetched.ok(), (fetched.ok() ? "" : fetched.error().message));
  for (const auto& [name, content] : files) {
    CHECK_MESSAGE(content_of(fetched.value().path / name) == content, name);
  }
}

inline void write_files(const std::filesystem::path& folder,
                        const std::map<std::string, std::string>& files) {
  std::filesystem::create_directories(folder);
  for (const auto& [name, content] : files) {
    std::ofstream(folder / name, std::ios::binary) << content;
  }
}

}  // namespace lockstep
