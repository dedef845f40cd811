// Guessed tokens: fewer steps, the same text.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "support/fake_pages.h"
#include "support/rank_threads.h"

using namespace lockstep;

namespace {

constexpr SchedulerLimits kFewSequences{
    .sequences_max = 4, .waiting_max = 100, .tokens_max = 64, .context = 1024, .vocab_size = 1000};

GenerateRequest drafting_request(uint64_t seed, int max_tokens, int draft_tokens) {
  GenerateRequest request;
  request.prompt = {5, 6, 7};
  request.max_tokens = max_tokens;
  request.sampling.seed = seed;
  request.draft_tokens = draft_tokens;
  return request;
}

struct CountedRun {
  FakeAnswer answer;
  int steps = 0;
  int64_t computed = 0;
};

CountedRun run(const GenerateRequest& request, int states = 0) {
  SchedulerLimits limits = kFewSequences;
  limits.states = states;
  FakeEngine engine(limits);
  engine.submit(1, request);
  CountedRun run;
  run.steps = engine.run();
  run.answer = engine.answer(1);
  run.computed = engine.pages.tokens_computed;
  const auto counts = engine.scheduler.page_counts();
  CHECK(counts.free + counts.cached == counts.all);
  CHECK(counts.snapshots + counts.free_states == states);
  return run;
}

}  // namespace

TEST_CASE("a text that repeats itself takes fewer steps and stays what it is") {
  for (const uint64_t seed : {kRepeatingSeed, kRepeatingSeed + 1, kRepeatingSeed + 2}) {
    const CountedRun plain = run(drafting_request(seed, 600, 0));
    CHECK(plain.steps == 600);
    for (const int draft_tokens : {1, 2, 5, 16, 1000}) {
      CAPTURE(draft_tokens);
      const CountedRun guessed = run(drafting_request(seed, 600, draft_tokens));
      CHECK(guessed.answer.tokens == plain.answer.tokens);
      CHECK(guessed.answer.end == plain.answer.end);
      CHECK(guessed.steps < (draft_tokens < 5 ? 450 : 300));
    }
  }
}

TEST_CASE("guesses are taken back in recurrent layers too, and are fewer") {
  const int states = states_needed(kFewSequences.sequences_max);
  for (const uint64_t seed : {kRepeatingSeed, kRepeatingSeed + 1}) {
    const CountedRun plain = run(drafting_request(seed, 600, 0), states);
    CHECK(plain.steps == 600);
    for (const int draft_tokens : {1, 5, 16}) {
      CAPTURE(draft_tokens);
      const CountedRun guessed = run(drafting_request(seed, 600, draft_tokens), states);
      CHECK(guessed.answer.tokens == plain.answer.tokens);
      CHECK(guessed.steps < (draft_tokens < 5 ? 450 : 300));
    }
  }
}

TEST_CASE("a text ends at its length and at the end of the context, whatever was guessed") {
  for (int max_tokens = 95; max_tokens < 125; ++max_tokens) {
    const CountedRun guessed = run(drafting_request(kRepeatingSeed, max_tokens, 16));
    CHECK(guessed.answer.tokens ==
          run(drafting_request(kRepeatingSeed, max_tokens, 0)).answer.tokens);
    CHECK(guessed.answer.tokens.size() == static_cast<size_t>(max_tokens));
  }
  const CountedRun full = run(drafting_request(kRepeatingSeed, 5000, 16));
  CHECK(full.answer.tokens == run(drafting_request(kRepeatingSeed, 5000, 0)).answer.tokens);
  CHECK(full.answer.tokens.size() == 1024 - 3 + 1);
  GenerateRequest stopped = drafting_request(kRepeatingSeed, 500, 16);
  stopped.stop_ids = {107};
  const CountedRun early = run(stopped);
  stopped.draft_tokens = 0;
  CHECK(early.answer.end == "stop");
  CHECK(early.answer.tokens == run(stopped).answer.tokens);
}

TEST_CASE(
    "an answer that was expected takes few steps, and usual ones for 65 after a wrong token") {
  GenerateRequest request = drafting_request(7, 600, 0);
  const CountedRun plain = run(request);
  REQUIRE(plain.answer.tokens.size() == 600);
  request.guess = plain.answer.tokens;
  const CountedRun right = run(request);
  CHECK(right.answer.tokens == plain.answer.tokens);
  CHECK(right.answer.end == plain.answer.end);
  CHECK(right.steps == 1 + (599 + 63) / 64);  // the prompt, then 63 guesses and a choice a step
  CHECK(right.computed == plain.computed);
  for (const size_t wrong : {0u, 1u, 63u, 64u, 300u, 599u}) {
    CAPTURE(wrong);
    request.guess = plain.answer.tokens;
    ++request.guess[wrong];
    const CountedRun other = run(request);
    CHECK(other.answer.tokens == plain.answer.tokens);
    const int usual = std::min(kGuessTokensMax + 1, 599 - static_cast<int>(wrong));
    CHECK(other.steps >= usual);
    CHECK(other.steps <= usual + right.steps + 1);
    CHECK(other.computed <= plain.computed + 64);
  }
}

TEST_CASE("an expected answer may go on from elsewhere, be too short and end early") {
  GenerateRequest request = drafting_request(7, 200, 0);
  const CountedRun plain = run(request);
  GenerateRequest resumed = request;
  resumed.guess = plain.answer.tokens;
  const auto begin = plain.answer.tokens.begin();
  resumed.prompt.insert(resumed.prompt.end(), begin, begin + 100);
  resumed.max_tokens = 100;
  resumed.resumed_tokens = 100;
  const CountedRun rest = run(resumed);
  CHECK(rest.answer.tokens == std::vector<int32_t>(begin + 100, begin + 200));
  CHECK(rest.steps <= 4);  // two of the prompt
  GenerateRequest half = request;
  half.guess.assign(begin, begin + 100);
  const CountedRun longer = run(half);
  CHECK(longer.answer.tokens == plain.answer.tokens);
  CHECK(longer.steps <= 3 + 100);
  GenerateRequest stopped = request;
  stopped.stop_ids = {plain.answer.tokens[150]};
  const CountedRun early = run(stopped);
  stopped.guess = plain.answer.tokens;
  CHECK(run(stopped).answer.tokens == early.answer.tokens);
  CHECK(run(stopped).answer.end == "stop");
}

TEST_CASE("an expected answer is computed next to other sequences") {
  FakeEngine engine(kFewSequences);
  GenerateRequest request = drafting_request(7, 300, 0);
  const CountedRun plain = run(request);
  request.guess = plain.answer.tokens;
  for (uint64_t id = 0; id < 4; ++id) {
    engine.submit(id, id == 3 ? request : drafting_request(id, 300, 0));
  }
  bool has_guessed = false;
  while (engine.plan()) {
    has_guessed |= engine.scheduler.shape().guesses > 0;
    CHECK(engine.scheduler.shape().decoding + engine.scheduler.shape().guesses <=
          kFewSequences.tokens_max);
    engine.complete();
  }
  CHECK(has_guessed);
  CHECK(engine.answer(3).tokens == plain.answer.tokens);
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

TEST_CASE("choices that depend on the tokens before them are guessed too") {
  const auto steps_of = [](auto change) {
    GenerateRequest request = drafting_request(kRepeatingSeed, 300, 16);
    change(request);
    return run(request).steps;
  };
  CHECK(steps_of([](GenerateRequest& r) { r.constraint = "x"; }) < 200);
  CHECK(steps_of([](GenerateRequest& r) { r.logit_bias = {{.token = 1}}; }) < 200);
  CHECK(steps_of([](GenerateRequest& r) { r.sampling.repetition_penalty = 1.1f; }) < 200);
}

TEST_CASE("nothing is guessed in steps with prompts or with many sequences") {
  FakeEngine engine(kFewSequences);
  for (uint64_t id = 0; id < 3; ++id) {
    GenerateRequest request =
        drafting_request(kRepeatingSeed + id, 100 + 200 * static_cast<int>(id), 8);
    engine.submit(id, request);
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

// Each of the grammars lets the text repeat itself and then forces it to end or change, so that
// guesses are right, wrong and forbidden.
TEST_CASE("under grammars, penalties and biases the tokens are the same with and without guesses") {
  const std::string model = std::string(LOCKSTEP_SOURCE_DIR) + "/models/stories260K";
  std::vector<GenerateRequest> requests;
  const char* const constraints[] = {
      "", R"({"regex": "(the cat and ){9}(the dog and ){4}[a-z ]{5,60}[.]"})",
      R"({"json_schema": {"type": "array", "minItems": 4, "maxItems": 4, "items": {"type": "object",
        "properties": {"name": {"enum": ["Lily", "Tom"]}, "age": {"type": "integer", "minimum": 1,
        "maximum": 99}}, "required": ["name", "age"], "additionalProperties": false}}})"};
  const SamplingOptions samplings[] = {{},
                                       {.temperature = 1, .seed = 4},
                                       {.temperature = 1.2f, .top_p = 0.9f, .seed = 5},
                                       {.temperature = 1.2f, .top_k = 20, .seed = 6},
                                       {.temperature = 0.8f,
                                        .seed = 7,
                                        .repetition_penalty = 1.05f,
                                        .penalty_tokens = 40,
                                        .frequency_penalty = 0.05f}};
  for (const char* constraint : constraints) {
    for (const SamplingOptions& sampling : samplings) {
      GenerateRequest request{.prompt = {1, 403, 407, 261, 378}, .max_tokens = 160};
      for (int i = 0; i < 40; ++i) request.prompt.push_back(300 + i % 7);
      request.stop_ids = {2};
      request.sampling = sampling;
      request.constraint = constraint;
      request.min_tokens = 30;
      request.logit_bias = {{303, 1.5f}};
      request.top_logprobs = sampling.top_p < 1 ? 2 : -1;
      requests.push_back(request);
    }
  }
  for (const GenerateRequest& request : requests) {
    CAPTURE(request.constraint);
    CAPTURE(request.sampling.seed);
    const Answer expected = run_ranks(model, {}, {request}).answers[0];
    REQUIRE(expected.error.empty());
    REQUIRE(expected.tokens.size() >= 20);
    GenerateRequest guessed = request;
    guessed.draft_tokens = 8;
    for (const Setup& setup : {Setup{}, Setup{.shares = {1, 1}}, Setup{.shares = {5, 1, 2}}}) {
      const Answer answer = run_ranks(model, setup, {guessed}).answers[0];
      CHECK(answer.error.empty());
      CHECK(same_bits(answer, expected));
      CHECK(answer.reason == expected.reason);
      CHECK(answer.logprobs.size() == expected.logprobs.size());
    }
  }
}
