// Links are measured again while a group serves, and no answer changes by it.
#include "engine/run/link_turns.h"

#include <doctest/doctest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "engine/engine.h"
#include "support/comes_true.h"
#include "support/event_reader.h"
#include "support/rank_threads.h"
#include "support/story_requests.h"
#include "transport/unformed_link.h"

using namespace lockstep;
using namespace std::chrono_literals;

namespace {

// Measured so quickly that a turn may follow every millisecond.
const LinkCost kQuick{.bytes_per_us = 1'000'000, .p50_ns = 1};

Group::Options unformed(int rank, int size, const LinkCost& cost) {
  return {.rank = rank,
          .links = unformed_links(rank, size),
          .link_costs = std::vector<LinkCost>(static_cast<size_t>(size * size), cost)};
}

class Tokens final : public EventReader {
 public:
  explicit Tokens(Engine& engine) : engine_(engine) {}
  void on_token(uint64_t, int32_t token) override { tokens_.push_back(token); }
  void on_end(uint64_t, FinishReason) override { engine_.stop(); }
  void on_error(uint64_t, const Error& error) override { FAIL(error.message); }
  const std::vector<int32_t>& tokens() const { return tokens_; }

 private:
  Engine& engine_;
  std::vector<int32_t> tokens_;
};

GenerateRequest story() {
  GenerateRequest request;
  request.prompt = {1, 403, 407, 261};
  request.max_tokens = 60;
  request.sampling = {.temperature = 1, .seed = 7};
  return request;
}

// A group of threads, whose links are metered and measured in turn.
struct MeasuredRanks {
  MeasuredRanks(int size, int stages, LinkKind kind) : stages(stages) {
    auto links = open_local_links(kind, size);
    REQUIRE(links.ok());
    for (int rank = 0; rank < size; ++rank) {
      const auto r = static_cast<size_t>(rank);
      auto engine = load_engine({.spec = {.model = kStories,
                                          .shares = equal_shares(size),
                                          .link = {.stages = stages},
                                          .threads = 1,
                                          .context = 256,
                                          .batch_tokens_max = 16},
                                 .measure_links_every = 1ms,
                                 .kernels = kernels_named("")},
                                Group(unformed(rank, size, kQuick)));
      REQUIRE(engine.ok());
      engines.push_back(std::move(engine.value()));
      meters.push_back(std::make_shared<LinkMeters>(static_cast<size_t>(size)));
      Group::Options options = unformed(rank, size, kQuick);
      options.kernels = kernels_named("");
      options.timeout = 20s;
      options.meters = meters.back();
      options.links = std::move(links.value()[r]);
      for (size_t peer = 0; peer < options.links.size(); ++peer) {
        if (!options.links[peer]) continue;
        options.links[peer] =
            std::make_unique<MeteredLink>(std::move(options.links[peer]), meters.back(), peer);
      }
      REQUIRE(engines.back()->rejoin(Group(std::move(options))).ok());
    }
  }

  // Whether every two ranks of a stage have been measured.
  bool are_measured() const {
    const size_t ranks = engines.size() / static_cast<size_t>(stages);
    for (size_t low = 0; low < engines.size(); ++low) {
      for (size_t high = low + 1; high < (low / ranks + 1) * ranks; ++high) {
        const LinkReading figures = (*meters[low])[high].read(static_cast<int32_t>(high));
        if (figures.p50_ns == 0 || figures.bytes_per_us == 0 || figures.p99_ns < figures.p50_ns) {
          return false;
        }
      }
    }
    return true;
  }

  // Bytes, as the lower rank of each pair has counted them.
  uint64_t carried() const {
    uint64_t bytes = 0;
    for (size_t low = 0; low < engines.size(); ++low) {
      for (size_t high = low + 1; high < engines.size(); ++high) {
        bytes += (*meters[low])[high].read(static_cast<int32_t>(high)).bytes;
      }
    }
    return bytes;
  }

  int stages;
  std::vector<std::unique_ptr<Engine>> engines;
  std::vector<std::shared_ptr<LinkMeters>> meters;
};

}  // namespace

TEST_CASE("pairs take turns, and measuring takes at most a thousandth of the time") {
  const auto begin = LinkTurns::Time{};
  Group::Options options = unformed(0, 3, kQuick);
  options.link_costs[1] = {.bytes_per_us = 1, .p50_ns = 1'000'000};  // of ranks 0 and 1
  const std::chrono::nanoseconds slow = measuring_time(options.link_costs[1]);
  CHECK(slow > 8ms);  // 4 rounds of 2 ms, and long ones
  CHECK(slow < 100ms);
  LinkTurns turns(Group(std::move(options)), 2s, begin);
  CHECK(turns.next() == begin + 2s);
  CHECK(!turns.take(begin + 1999ms));
  CHECK(turns.take(begin + 2s) == RankPair{0, 1});
  CHECK(turns.next() == begin + 2s + LinkTurns::kShareMax * slow);
  CHECK(!turns.take(begin + 4s));
  const auto later = begin + 1h;
  CHECK(turns.take(later) == RankPair{0, 2});
  CHECK(turns.next() == later + 2s);
  CHECK(turns.take(later + 2s) == RankPair{1, 2});
  CHECK(turns.take(later + 4s) == RankPair{0, 1});
}

TEST_CASE("nobody measures alone, without an interval, or where nothing was measured at first") {
  const auto begin = LinkTurns::Time{};
  CHECK(!LinkTurns(Group(unformed(0, 1, kQuick)), 2s, begin).next());
  CHECK(!LinkTurns(Group(unformed(0, 2, kQuick)), 0s, begin).take(begin + 1h));
  Group::Options unmeasured = unformed(0, 2, kQuick);
  unmeasured.link_costs.clear();
  CHECK(!LinkTurns(Group(std::move(unmeasured)), 2s, begin).next());
}

TEST_CASE("links are measured between steps and while a group idles, and tokens stay the same") {
  const Answer expected = run_ranks(kStories, {}, {story()}).answers[0];
  REQUIRE(expected.tokens.size() == 60);
  struct Case {
    int size, stages;
    LinkKind kind;
  };
  for (const Case& one :
       {Case{3, 1, LinkKind::kShm}, Case{2, 1, LinkKind::kTcp}, Case{4, 2, LinkKind::kShm}}) {
    CAPTURE(one.size);
    CAPTURE(one.stages);
    MeasuredRanks ranks(one.size, one.stages, one.kind);
    Tokens tokens(*ranks.engines[0]);
    std::vector<std::thread> threads;
    std::vector<Status> ends(ranks.engines.size(), Ok{});
    for (size_t rank = 0; rank < ranks.engines.size(); ++rank) {
      threads.emplace_back([&, rank] { ends[rank] = ranks.engines[rank]->run(tokens); });
    }
    CHECK(comes_true([&] { return ranks.are_measured(); }));
    CHECK(ranks.carried() == 0);  // measurements, and the orders to measure, are no traffic
    ranks.engines[0]->submit(1, story());
    for (std::thread& thread : threads) thread.join();
    for (const Status& end : ends) CHECK_MESSAGE(end.ok(), (end.ok() ? "" : end.error().message));
    CHECK(tokens.tokens() == expected.tokens);
    CHECK(ranks.carried() > 0);
  }
}
