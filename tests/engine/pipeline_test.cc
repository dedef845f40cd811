// Stages of a pipeline: the same bits as one rank, whatever the stages, their ranks and shares, and
// with several steps in flight.
#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "engine/variant.h"
#include "support/golden.h"
#include "support/rank_threads.h"
#include "support/story_requests.h"

using namespace lockstep;

namespace {

Setup stages_of(std::vector<double> shares, int stages) {
  return {.shares = std::move(shares), .stages = stages};
}

// For models of at least three layers.
std::vector<Variant> three_layer_variants() {
  std::vector<Variant> all{
      {"3 stages", stages_of({1, 1, 1}, 3)},
      {"3 stages, 5:1:2", stages_of({5, 1, 2}, 3), 7},
      {"3 stages of 2 ranks", stages_of({1, 1, 3, 1, 1, 7}, 3)},
      {"2 stages of 3 ranks", stages_of({1, 1, 1, 2, 1, 1}, 2), 1},
      {"2 stages of 4 ranks", stages_of(std::vector<double>(8, 1.0), 2)},
      {"3 stages on the test device", stages_of({1, 1, 1}, 3), 7},
      {"3 stages over tcp", stages_of({2, 1, 1}, 3)},
      {"2 stages of 2 ranks, latents cut", stages_of({1, 1, 1, 1}, 2)},
  };
  all[5].setup.device = "delayed";
  all[6].setup.link = LinkKind::kTcp;
  all[7].setup.latent_cut = LatentCut::kAlways;
  return all;
}

// Other requests, so that several steps are in flight.
std::vector<GenerateRequest> company_of(const std::vector<int32_t>& prompt) {
  std::vector<GenerateRequest> requests;
  for (size_t i = 0; i < 5; ++i) {
    const size_t size = std::min(prompt.size(), 2 + 6 * i);
    requests.push_back({.prompt = {prompt.rbegin(), prompt.rbegin() + static_cast<int>(size)},
                        .max_tokens = static_cast<int>(3 + 9 * i),
                        .sampling = {.temperature = 1.0f, .seed = i}});
  }
  return requests;
}

}  // namespace

TEST_CASE("models of three layers have the same bits in every number of stages and ranks") {
  for (const char* name : {"mistral-bf16", "deepseekv3-bf16", "deepseekv3-q4-g64", "kimik2-q8-g32",
                           "glm4moe-bf16", "deepseekv32-bf16", "glmdsa-shared-bf16", "glm5next-fp8",
                           "deepseekv4-fp4", "qwen4exp-fp8"}) {
    const std::string folder = golden_folder(name);
    GenerateRequest request{.prompt = read_golden(folder).prompt, .max_tokens = 8};
    request.prompt_logits = true;
    const Answer reference = run_ranks(folder, {}, {request}).answers[0];
    REQUIRE(reference.logits.size() == request.prompt.size());
    for (const Variant& variant : three_layer_variants()) {
      CAPTURE(name);
      GenerateRequest varied = request;
      varied.chunk = variant.chunk;
      const Outcome outcome = run_ranks(folder, variant.setup, {varied});
      CHECK_MESSAGE(same_bits(outcome.answers[0], reference), variant.name);
    }
  }
}

TEST_CASE("each of several sequences gets the tokens that it gets alone") {
  for (const char* name : {"llama3-bf16", "gptoss-mxfp4", "qwen3-q4-g64", "gemma4-dense-bf16",
                           "gemma4-e-bf16", "qwen35-q4-g64", "kimilinear-bf16", "deepseekv32-bf16",
                           "glm5next-bf16", "deepseekv4-bf16", "qwen4exp-bf16"}) {
    CAPTURE(name);
    const std::string folder = golden_folder(name);
    std::vector<GenerateRequest> requests = company_of(read_golden(folder).prompt);
    requests[3].prompt_logits = true;
    std::vector<Answer> alone;
    for (const GenerateRequest& request : requests) {
      alone.push_back(run_ranks(folder, {}, {request}).answers[0]);
    }
    for (const Setup& setup : {stages_of({1, 1}, 2), stages_of({1, 3, 2, 1}, 2)}) {
      const Outcome outcome = run_ranks(folder, setup, requests);
      for (size_t i = 0; i < requests.size(); ++i) {
        CAPTURE(i);
        CHECK(same_bits(outcome.answers[i], alone[i]));
      }
    }
  }
}

TEST_CASE("five stages, with tied embeddings and a prompt of many chunks in flight") {
  std::vector<int32_t> prompt(400);
  for (size_t i = 0; i < prompt.size(); ++i) prompt[i] = static_cast<int32_t>(1 + i * 37 % 500);
  const GenerateRequest request{.prompt = prompt, .max_tokens = 40, .prompt_logits = true};
  const Answer reference = run_ranks(kStories, {}, {request}).answers[0];
  REQUIRE(reference.tokens.size() == 40);
  for (const Setup& setup : {stages_of({1, 1, 1, 1, 1}, 5), stages_of({1, 1, 1, 1, 1, 1}, 3)}) {
    CHECK(same_bits(run_ranks(kStories, setup, {request}).answers[0], reference));
  }
}

TEST_CASE("a rank holds only the layers of its stage, and their state") {
  const std::string folder = golden_folder("llama3-bf16");
  const GenerateRequest request{.prompt = {1}, .max_tokens = 1};
  const LoadReport whole = run_ranks(folder, {}, {request}).reports[0];
  const auto reports = run_ranks(folder, stages_of({1, 1}, 2), {request}).reports;
  CHECK(reports[0].weight_bytes + reports[1].weight_bytes == whole.weight_bytes);
  CHECK(reports[0].read_bytes == reports[0].weight_bytes);
  CHECK(reports[0].token_bytes + reports[1].token_bytes == whole.token_bytes);
  CHECK(reports[0].state_bytes + reports[1].state_bytes == whole.state_bytes);
  CHECK(reports[0].state_bytes == reports[1].state_bytes);  // two layers on one of them
  CHECK(reports[0].vocab_size == reports[1].vocab_size);

  const std::string tied = golden_folder("llama3-bf16-tied");
  const LoadReport all = run_ranks(tied, {}, {request}).reports[0];
  const auto two = run_ranks(tied, stages_of({1, 1}, 2), {request}).reports;
  // Both stages hold the embedding: the last one uses it as the LM head.
  CHECK(two[0].weight_bytes + two[1].weight_bytes > all.weight_bytes);
  CHECK(two[0].token_bytes + two[1].token_bytes == all.token_bytes);
}

TEST_CASE("stages that cannot be formed are refused") {
  const auto refusal = [](std::vector<double> shares, int stages) {
    std::vector<std::unique_ptr<Link>> links(1);
    const auto engine = load_engine({.spec = {.model = golden_folder("llama3-bf16"),
                                              .shares = std::move(shares),
                                              .link = {.stages = stages},
                                              .threads = 1},
                                     .kernels = available_kernels().back()},
                                    Group({.links = std::move(links)}));
    REQUIRE(!engine.ok());
    return engine.error().message;
  };
  CHECK(refusal({1}, 2) == "1 ranks cannot form 2 stages of the same size");
  CHECK(refusal({1}, 0) == "1 ranks cannot form 0 stages of the same size");
  CHECK(refusal({1, 1}, 1) == "2 shares were given for 1 ranks");
}

namespace {

// Cancels each request of its list once it has the given number of tokens.
class CancellerAtLength final : public EventReader {
 public:
  CancellerAtLength(Engine& engine, std::vector<int> cancel_after)
      : answers(cancel_after.size()), engine_(engine), cancel_after_(std::move(cancel_after)) {}

  void on_token(uint64_t request, int32_t token) override {
    CHECK(!answers[request].has_ended);
    answers[request].tokens.push_back(token);
    if (static_cast<int>(answers[request].tokens.size()) == cancel_after_[request]) {
      engine_.cancel(request);
    }
  }
  void on_end(uint64_t request, FinishReason) override { end(request); }
  void on_error(uint64_t request, const Error& error) override {
    CHECK(error.code == ErrorCode::kCancelled);
    answers[request].is_cancelled = true;
    end(request);
  }

  struct Cancelled {
    std::vector<int32_t> tokens;
    bool has_ended = false;
    bool is_cancelled = false;
  };
  std::vector<Cancelled> answers;

 private:
  void end(uint64_t request) {
    CHECK(!answers[request].has_ended);
    answers[request].has_ended = true;
    if (++ended_ == answers.size()) engine_.stop();
  }

  Engine& engine_;
  std::vector<int> cancel_after_;
  size_t ended_ = 0;
};

// Stops the engine after the given number of tokens.
class Stopper final : public EventReader {
 public:
  Stopper(Engine& engine, int stop_after) : engine_(engine), stop_after_(stop_after) {}
  void on_token(uint64_t, int32_t) override {
    if (++tokens == stop_after_) engine_.stop();
  }
  void on_end(uint64_t, FinishReason) override { CHECK(false); }
  void on_error(uint64_t, const Error&) override { CHECK(false); }

  int tokens = 0;

 private:
  Engine& engine_;
  int stop_after_;
};

}  // namespace

TEST_CASE("many streams, some cancelled in flight: the others' tokens are those they get alone") {
  const std::string folder = golden_folder("qwen3-bf16-tied");
  const std::vector<int32_t> prompt = read_golden(folder).prompt;
  std::mt19937 random(11);
  std::vector<GenerateRequest> requests;
  std::vector<int> cancel_after;
  for (int i = 0; i < 40; ++i) {
    const size_t size = 1 + random() % prompt.size();
    requests.push_back({.prompt = {prompt.begin(), prompt.begin() + static_cast<int>(size)},
                        .max_tokens = static_cast<int>(5 + random() % 40),
                        .sampling = {.temperature = 0.9f, .seed = random()},
                        .chunk = static_cast<int>(random() % 3)});
    cancel_after.push_back(random() % 3 == 0 ? static_cast<int>(1 + random() % 10) : -1);
  }
  const Outcome alone = run_ranks(folder, {}, requests);
  for (const Setup& setup : {stages_of({1, 1}, 2), stages_of({2, 1, 1, 1}, 2)}) {
    std::vector<CancellerAtLength::Cancelled> answers;
    run_ranks_with(folder, setup, [&](Engine& engine, int rank) {
      if (rank == 0) submit_all(engine, requests);
      CancellerAtLength events(engine, cancel_after);
      const Status status = engine.run(events);
      if (rank == 0) answers = std::move(events.answers);
      return status;
    });
    REQUIRE(answers.size() == requests.size());
    size_t cancels = 0;
    for (size_t i = 0; i < requests.size(); ++i) {
      CAPTURE(i);
      const std::vector<int32_t>& expected = alone.answers[i].tokens;
      const std::vector<int32_t>& got = answers[i].tokens;
      CHECK(answers[i].has_ended);
      REQUIRE(got.size() <= expected.size());
      CHECK(std::equal(got.begin(), got.end(), expected.begin()));
      if (!answers[i].is_cancelled) CHECK(got.size() == expected.size());
      cancels += answers[i].is_cancelled ? 1 : 0;
    }
    CHECK(cancels > 5);
  }
}

TEST_CASE("a stop with steps in flight ends every stage in order") {
  const std::vector<int32_t> prompt(450, 7);
  const std::vector<GenerateRequest> requests(3, {.prompt = prompt, .max_tokens = 60});
  for (const int stop_after : {1, 2, 7}) {
    for (const Setup& setup : {stages_of({1, 1, 1}, 3), stages_of({1, 1, 1, 1}, 2)}) {
      int tokens = 0;
      run_ranks_with(kStories, setup, [&](Engine& engine, int rank) {
        if (rank == 0) submit_all(engine, requests);
        Stopper events(engine, stop_after);
        const Status status = engine.run(events);
        if (rank == 0) tokens = events.tokens;
        return status;
      });
      CHECK(tokens >= stop_after);
      // Steps in flight still complete, and nothing comes after them.
      CHECK(tokens <= stop_after + 2 * setup.stages);
    }
  }
}
