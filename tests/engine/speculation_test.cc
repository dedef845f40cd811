// Guessed tokens: fewer steps, never another text.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "support/fake_pages.h"
#include "support/rank_threads.h"

using namespace lockstep;

namespace {

constexpr SchedulerLimits kLimits{
    .sequences_max = 4, .waiting_max = 100, .tokens_max = 64, .context = 1024, .vocab_size = 1000};

GenerateRequest request_of(uint64_t seed, int max_tokens, int draft_tokens) {
  GenerateRequest request;
  request.prompt = {5, 6, 7};
  request.max_tokens = max_tokens;
  request.sampling.seed = seed;
  request.draft_tokens = draft_tokens;
  return request;
}

struct Run {
  FakeAnswer answer;
  int steps = 0;
  int64_t computed = 0;
};

Run run(const GenerateRequest& request) {
  FakeEngine engine(kLimits);
  REQUIRE(engine.scheduler.submit(1, request).ok());
  Run run;
  run.steps = engine.run();
  run.answer = engine.answer(1);
  run.computed = engine.pages.tokens_computed;
  const auto counts = engine.scheduler.page_counts();
  CHECK(counts.free + counts.cached == counts.all);
  return run;
}

}  // namespace

TEST_CASE("a text that repeats itself takes fewer steps and stays what it is") {
  for (const uint64_t seed : {kRepeatingSeed, kRepeatingSeed + 1, kRepeatingSeed + 2}) {
    const Run plain = run(request_of(seed, 600, 0));
    CHECK(plain.steps == 600);
    for (const int draft_tokens : {1, 2, 5, 16, 1000}) {
      CAPTURE(draft_tokens);
      const Run guessed = run(request_of(seed, 600, draft_tokens));
      CHECK(guessed.answer.tokens == plain.answer.tokens);
      CHECK(guessed.answer.end == plain.answer.end);
      CHECK(guessed.steps < (draft_tokens < 5 ? 450 : 300));
    }
  }
}

TEST_CASE("a text ends at its length and at the end of the context, whatever was guessed") {
  for (int max_tokens = 95; max_tokens < 125; ++max_tokens) {
    const Run guessed = run(request_of(kRepeatingSeed, max_tokens, 16));
    CHECK(guessed.answer.tokens == run(request_of(kRepeatingSeed, max_tokens, 0)).answer.tokens);
    CHECK(guessed.answer.tokens.size() == static_cast<size_t>(max_tokens));
  }
  const Run full = run(request_of(kRepeatingSeed, 5000, 16));
  CHECK(full.answer.tokens == run(request_of(kRepeatingSeed, 5000, 0)).answer.tokens);
  CHECK(full.answer.tokens.size() == 1024 - 3 + 1);
  GenerateRequest stopped = request_of(kRepeatingSeed, 500, 16);
  stopped.stop_ids = {107};
  const Run early = run(stopped);
  stopped.draft_tokens = 0;
  CHECK(early.answer.end == "stop");
  CHECK(early.answer.tokens == run(stopped).answer.tokens);
}

TEST_CASE("guesses that fail cost little") {
  Drafts drafts;
  int guesses = 0;
  for (int step = 0; step < 1000; ++step) {
    if (drafts.pause > 0) {
      --drafts.pause;
      continue;
    }
    drafts.count = drafts.size;
    guesses += drafts.count;
    drafts.learn(0);
  }
  CHECK(guesses < 25);
  drafts.learn(drafts.count);
  CHECK(drafts.size == 3);
  CHECK(drafts.next_pause == 4);
}

TEST_CASE("what depends on more than logits, seed and position is not guessed") {
  const auto rows = [](auto change) {
    GenerateRequest request = request_of(kRepeatingSeed, 300, 16);
    change(request);
    const Run changed = run(request);
    return changed.steps;
  };
  CHECK(rows([](GenerateRequest&) {}) < 200);
  CHECK(rows([](GenerateRequest& r) { r.constraint = "x"; }) == 300);
  CHECK(rows([](GenerateRequest& r) { r.logit_bias = {{.token = 1}}; }) == 300);
  CHECK(rows([](GenerateRequest& r) { r.min_tokens = 1, r.stop_ids = {50}; }) == 300);
  CHECK(rows([](GenerateRequest& r) { r.sampling.repetition_penalty = 1.1f; }) == 300);
  CHECK(rows([](GenerateRequest& r) { r.sampling.presence_penalty = 1; }) == 300);
  CHECK(rows([](GenerateRequest& r) { r.sampling.frequency_penalty = 1; }) == 300);
  CHECK(rows([](GenerateRequest& r) { r.sampling.dry_multiplier = 1; }) == 300);
}

TEST_CASE("nothing is guessed beside prompts or beside many sequences") {
  FakeEngine engine(kLimits);
  for (uint64_t id = 0; id < 3; ++id) {
    GenerateRequest request = request_of(kRepeatingSeed + id, 100 + 200 * static_cast<int>(id), 8);
    REQUIRE(engine.scheduler.submit(id, request).ok());
  }
  bool has_guessed = false;
  while (engine.plan()) {
    const bool is_crowded = engine.answer(0).end.empty();
    if (is_crowded) CHECK(engine.scheduler.shape().guesses == 0);
    has_guessed |= engine.scheduler.shape().guesses > 0;
    engine.complete();
  }
  CHECK(has_guessed);
}

TEST_CASE("the model's tokens are the same with and without guesses") {
  const std::string model = std::string(LOCKSTEP_SOURCE_DIR) + "/models/stories260K";
  std::vector<int32_t> prompt{1};
  for (int i = 0; i < 90; ++i) prompt.push_back(300 + i % 9);
  for (const float temperature : {0.0f, 0.3f, 1.0f}) {
    GenerateRequest plain;
    plain.prompt = prompt;
    plain.max_tokens = 200;
    plain.sampling = {.temperature = temperature, .seed = 3};
    GenerateRequest guessed = plain;
    guessed.draft_tokens = 8;
    const Answer expected = run_ranks(model, {}, {plain}).answers[0];
    REQUIRE(expected.tokens.size() == 200);
    std::vector<Setup> setups(5);
    setups[1].shares = {1, 1};
    setups[2].shares = {3, 1};
    setups[2].device = "delayed";
    setups[3].shares = {1, 1};
    setups[3].stages = 2;
    setups[4].batch_tokens_max = 8;
    for (const Setup& setup : setups) {
      const Outcome outcome = run_ranks(model, setup, {guessed});
      CHECK(outcome.answers[0].tokens == expected.tokens);
    }
  }
}
