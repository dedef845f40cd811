// An engine outlives its groups: weights stay, sequences and requests do not, and answers have the
// same bits in every epoch.
#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "support/golden.h"
#include "support/rank_threads.h"
#include "support/story_requests.h"
#include "transport/unformed_link.h"

using namespace lockstep;

namespace {

// Stops or leaves after a given number of tokens.
class Recorder final : public EventReader {
 public:
  Recorder(Engine& engine, size_t leave_after) : engine_(engine), leave_after_(leave_after) {}
  void on_token(uint64_t, int32_t token) override {
    tokens_.push_back(token);
    if (tokens_.size() == leave_after_) engine_.leave();
  }
  void on_end(uint64_t, FinishReason) override { engine_.stop(); }
  void on_error(uint64_t, const Error& error) override { FAIL(error.message); }
  const std::vector<int32_t>& tokens() const { return tokens_; }

 private:
  Engine& engine_;
  size_t leave_after_;
  std::vector<int32_t> tokens_;
};

// The ranks of one model as threads of this process.
class Ranks {
 public:
  Ranks(int size, const std::string& device, KvKind kv = kKvDefault,
        const std::string& model = kStories, int stages = 1)
      : cancelled_(false) {
    for (int rank = 0; rank < size; ++rank) {
      auto engine = load_engine({.spec = {.model = model,
                                          .shares = equal_shares(size),
                                          .link = {.stages = stages},
                                          .threads = 1,
                                          .context = 256,
                                          .batch_tokens_max = 16,
                                          .device = device,
                                          .kv = kv,
                                          .draft_layer = true},  // stories260K has none
                                 .kernels = kernels_named("")},
                                group(rank, unformed_links(rank, size)));
      REQUIRE(engine.ok());
      engines_.push_back(std::move(engine.value()));
    }
  }

  // One epoch with one request: the tokens, and the result of run() on each rank.
  std::vector<int32_t> run_epoch(LinkKind link, uint32_t epoch, const GenerateRequest& request,
                                 size_t leave_after, bool ends_well) {
    const int size = static_cast<int>(engines_.size());
    cancelled_ = false;
    auto links = open_local_links(link, size, epoch);
    REQUIRE(links.ok());
    Recorder recorder(*engines_[0], leave_after);
    std::vector<Status> ends(engines_.size(), Ok{});
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size; ++rank) {
      const auto r = static_cast<size_t>(rank);
      REQUIRE(engines_[r]->rejoin(group(rank, std::move(links.value()[r]))).ok());
    }
    engines_[0]->submit(epoch, request);
    for (int rank = 0; rank < size; ++rank) {
      threads.emplace_back([&, r = static_cast<size_t>(rank)] {
        ends[r] = engines_[r]->run(recorder);
        if (!ends[r].ok()) cancelled_ = true;
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const Status& end : ends) {
      REQUIRE_MESSAGE(end.ok() == ends_well, (end.ok() ? "" : end.error().message));
      if (!end.ok()) CHECK(end.error().code == ErrorCode::kCancelled);
    }
    return recorder.tokens();
  }

 private:
  Group group(int rank, std::vector<std::unique_ptr<Link>> links) {
    return Group({.rank = rank,
                  .links = std::move(links),
                  .timeout = std::chrono::seconds(20),
                  .cancelled = &cancelled_,
                  .kernels = kernels_named("")});
  }

  std::atomic<bool> cancelled_;
  std::vector<std::unique_ptr<Engine>> engines_;
};

GenerateRequest story(int max_tokens) {
  GenerateRequest request;
  request.prompt = {1, 403, 407, 261};
  request.max_tokens = max_tokens;
  request.sampling = {.temperature = 1, .seed = 7};
  return request;
}

}  // namespace

TEST_CASE("an engine that left an epoch mid-sequence gives the same answer later") {
  const std::vector<int32_t> expected =
      Ranks(1, "cpu").run_epoch(LinkKind::kShm, 1, story(60), 0, true);
  REQUIRE(expected.size() == 60);
  for (const char* device : {"cpu", "delayed"}) {
    for (const int size : {1, 2, 3}) {
      CAPTURE(device);
      CAPTURE(size);
      Ranks ranks(size, device);
      uint32_t epoch = 1;
      for (const size_t leave_after : {1, 2, 17, 31}) {
        const LinkKind link = epoch % 2 == 0 ? LinkKind::kTcp : LinkKind::kShm;
        const auto part = ranks.run_epoch(link, epoch++, story(60), leave_after, false);
        CHECK(part == std::vector<int32_t>(expected.begin(),
                                           expected.begin() + static_cast<long>(leave_after)));
      }
      CHECK(ranks.run_epoch(LinkKind::kShm, epoch, story(60), 0, true) == expected);
    }
  }
}

TEST_CASE("an engine that left an epoch gives the same answer with every kind of keys and values") {
  for (const KvKind kv : {KvKind::kF32, KvKind::kBF16, KvKind::kF16, KvKind::kQ8}) {
    CAPTURE(kv_kind_name(kv));
    const std::vector<int32_t> expected =
        Ranks(1, "cpu", kv).run_epoch(LinkKind::kShm, 1, story(80), 0, true);
    Ranks ranks(3, "cpu", kv);
    const auto part = ranks.run_epoch(LinkKind::kTcp, 1, story(80), 70, false);
    CHECK(part == std::vector<int32_t>(expected.begin(), expected.begin() + 70));
    CHECK(ranks.run_epoch(LinkKind::kShm, 2, story(80), 0, true) == expected);
  }
}

TEST_CASE("an engine without a group cannot exchange, and says so") {
  Ranks ranks(2, "cpu");
  Group group({.rank = 1, .links = unformed_links(1, 2)});
  const Status status = group.wait_for(0);
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().message == "rank 0: the group is not formed yet");
}

TEST_CASE("an engine whose draft layer guesses gives the same answer in every epoch") {
  for (const char* name : {"mtp-qwen35-bf16", "mtp-glmdsa-bf16", "glm5next-bf16", "deepseekv4-fp4",
                           "qwen4exp-bf16", "deepseekv4-dspark"}) {
    CAPTURE(name);
    const std::string folder = golden_folder(name);
    const GenerateRequest request{.prompt = read_golden(folder).prompt, .max_tokens = 32};
    const std::vector<int32_t> expected = run_ranks(folder, {}, {request}).answers[0].tokens;
    for (const auto& [size, stages] : {std::pair{1, 1}, std::pair{3, 1}, std::pair{2, 2}}) {
      CAPTURE(size);
      CAPTURE(stages);
      Ranks ranks(size, "cpu", kKvDefault, folder, stages);
      uint32_t epoch = 1;
      for (const size_t leave_after : {1, 2, 3, 9, 20}) {
        CAPTURE(leave_after);
        const auto part = ranks.run_epoch(LinkKind::kShm, epoch++, request, leave_after, false);
        CHECK(part.size() >= leave_after);  // a step may have several tokens
        CHECK(std::equal(part.begin(), part.end(), expected.begin()));
      }
      CHECK(ranks.run_epoch(LinkKind::kTcp, epoch, request, 0, true) == expected);
    }
  }
}
