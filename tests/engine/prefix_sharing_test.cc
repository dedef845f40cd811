// Sequences that reuse the state of a shared beginning have the bits of those that compute
// everything, on every number of ranks, stages and devices.
#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

#include "support/golden.h"
#include "support/joined.h"
#include "support/rank_threads.h"
#include "support/story_requests.h"

using namespace lockstep;

namespace {

// One with keys and values in all layers, some with recurrent layers, one with entries, one with
// windows.
const std::string kModels[] = {kStories,
                               golden_folder("qwen3next-bf16"),
                               golden_folder("qwen35-q4-g64"),
                               golden_folder("kimilinear-bf16"),
                               golden_folder("glm5next-bf16"),
                               golden_folder("deepseekv4-bf16"),
                               golden_folder("gptoss-mxfp4"),
                               golden_folder("qwen4exp-bf16")};

struct Turn {
  Answer answer;
  int cached_tokens = -1;
};

// Submits each request after the previous one has ended.
class Turns final : public EventReader {
 public:
  Turns(Engine& engine, const std::vector<GenerateRequest>& requests)
      : engine_(engine), requests_(requests) {}

  void submit_next() { engine_.submit(turns.size(), requests_[turns.size()]), turns.push_back({}); }

  void on_start(uint64_t request, int cached_tokens) override {
    CHECK(turns.at(request).cached_tokens == -1);
    turns.at(request).cached_tokens = cached_tokens;
  }
  void on_token(uint64_t request, int32_t token) override {
    turns.at(request).answer.tokens.push_back(token);
  }
  void on_row(uint64_t request, const std::vector<float>& row) override {
    turns.at(request).answer.logits.push_back(row);
  }
  void on_end(uint64_t, FinishReason) override { go_on(); }
  void on_error(uint64_t request, const Error& error) override {
    turns.at(request).answer.error = error.message;
    go_on();
  }

  std::vector<Turn> turns;

 private:
  void go_on() {
    if (turns.size() < requests_.size()) return submit_next();
    engine_.stop();
  }

  Engine& engine_;
  const std::vector<GenerateRequest>& requests_;
};

std::vector<Turn> run_turns(const std::string& model, const Setup& setup,
                            const std::vector<GenerateRequest>& requests) {
  std::vector<Turn> turns;
  run_ranks_with(model, setup, [&](Engine& engine, int rank) {
    Turns events(engine, requests);
    if (rank == 0) events.submit_next();
    const Status status = engine.run(events);
    if (rank == 0) turns = std::move(events.turns);
    return status;
  });
  REQUIRE(turns.size() == requests.size());
  return turns;
}

std::vector<Setup> all_setups() {
  std::vector<Setup> all(9);
  all[1].shares = {1, 1};
  all[2].shares = {3, 1};
  all[3].shares = {1, 1};
  all[3].stages = 2;
  all[4].shares = {2, 1, 1, 1};
  all[4].stages = 2;
  all[5].device = "delayed";
  all[6].shares = {1, 2};
  all[6].link = LinkKind::kTcp;
  all[6].device = "delayed";
  all[7].batch_tokens_max = 24;
  all[8].shares = {1, 1, 1};
  all[8].overlap = Overlap::kAlways;
  return all;
}

void check_conversation(const std::string& model) {
  CAPTURE(model);
  const std::vector<int32_t> prompt = text_of_any_model(150, 1);
  const GenerateRequest first = generation_of(prompt, 90);
  const Answer told = run_ranks(model, {}, {first}).answers[0];
  REQUIRE(told.tokens.size() == 90);
  // After the answer, and after a beginning of it: pages of prompts and of generated tokens.
  const auto second = joined(joined(prompt, told.tokens), text_of_any_model(30, 4));
  const auto third = joined(prompt, {told.tokens.begin(), told.tokens.begin() + 50});
  const std::vector<GenerateRequest> requests{first, generation_of(second, 60),
                                              embedding_of(second), embedding_of(third), first};
  std::vector<Answer> alone;
  for (const GenerateRequest& request : requests) {
    alone.push_back(run_ranks(model, {}, {request}).answers[0]);
  }
  REQUIRE(alone[2].logits.size() == 1);
  for (const Setup& setup : all_setups()) {
    CAPTURE(setup.shares.size());
    CAPTURE(setup.stages);
    CAPTURE(setup.device);
    const std::vector<Turn> turns = run_turns(model, setup, requests);
    for (size_t i = 0; i < requests.size(); ++i) {
      CAPTURE(i);
      CHECK(turns[i].answer.error.empty());
      CHECK(same_bits(turns[i].answer, alone[i]));
    }
    CHECK(turns[0].cached_tokens == 0);
    CHECK(turns[1].cached_tokens == 192);  // of 239 computed ones
    CHECK(turns[2].cached_tokens == 256);
    CHECK(turns[3].cached_tokens == 192);
    CHECK(turns[4].cached_tokens == 128);
  }
}

void check_simultaneous(const std::string& model) {
  CAPTURE(model);
  const std::vector<int32_t> beginning = text_of_any_model(260, 2);
  std::vector<GenerateRequest> requests;
  for (int i = 0; i < 6; ++i) {
    requests.push_back(generation_of(joined(beginning, text_of_any_model(5 + 20 * i, 9 * i)), 30));
    requests.back().sampling.seed = static_cast<uint64_t>(i);
  }
  requests.push_back(embedding_of(joined(beginning, text_of_any_model(40, 70))));
  requests.push_back(generation_of(beginning, 2));
  requests.back().prompt_logits = true;
  std::vector<Answer> alone;
  for (const GenerateRequest& request : requests) {
    alone.push_back(run_ranks(model, {}, {request}).answers[0]);
  }
  for (const Setup& setup : all_setups()) {
    CAPTURE(setup.shares.size());
    CAPTURE(setup.stages);
    CAPTURE(setup.device);
    const Outcome together = run_ranks(model, setup, requests);
    for (size_t i = 0; i < requests.size(); ++i) {
      CAPTURE(i);
      CHECK(same_bits(together.answers[i], alone[i]));
    }
  }
}

}  // namespace

TEST_CASE("a continued conversation has the bits of one that is computed from its beginning") {
  for (const std::string& model : kModels) check_conversation(model);
}

TEST_CASE("simultaneous requests that begin alike have the bits that they have alone") {
  for (const std::string& model : kModels) check_simultaneous(model);
}
