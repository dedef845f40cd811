// A scheduler's orders to the draft layer: it sees every token once with the right hidden state,
// and its guesses change no text.
#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "support/fake_pages.h"

using namespace lockstep;

namespace {

SchedulerLimits model_limits(int stages = 1) {
  SchedulerLimits limits = kFakeLimits;
  limits.draft_vocab_size = limits.vocab_size;
  limits.stages = stages;
  return limits;
}

SchedulerLimits drafting_limits(int states = 0, int block = 0) {
  SchedulerLimits limits = kFakeLimits;
  limits.has_draft_layer = true;
  limits.states = states;
  limits.draft_block = block;
  return limits;
}

SchedulerLimits pipeline_limits(int stages, int states = 0) {
  SchedulerLimits limits = drafting_limits(states);
  limits.stages = stages;
  return limits;
}

GenerateRequest request_of(std::vector<int32_t> prompt, int max_tokens, uint64_t seed) {
  GenerateRequest request{.prompt = std::move(prompt), .max_tokens = max_tokens};
  request.sampling.seed = seed;
  return request;
}

// The answer without a draft layer.
FakeAnswer serial(const GenerateRequest& request, int states = 0) {
  SchedulerLimits limits = kFakeLimits;
  limits.states = states;
  return alone(request, limits);
}

}  // namespace

TEST_CASE("a layer that is mostly right saves most steps, with and without recurrent layers") {
  const int states = states_needed(kFakeLimits.sequences_max);
  for (const SchedulerLimits& limits :
       {drafting_limits(), drafting_limits(states), drafting_limits(0, 5), pipeline_limits(2),
        pipeline_limits(4), pipeline_limits(2, states)}) {
    CAPTURE(limits.states);
    CAPTURE(limits.stages);
    const GenerateRequest request = request_of(fake_text(100, 5), 600, kRepeatingSeed);
    FakeEngine engine(limits);
    const int before = engine.pages.tokens_drafted;
    engine.submit(1, request);
    const int steps = engine.run();
    CHECK(engine.answer(1).tokens == serial(request, limits.states).tokens);
    CHECK(steps < 200);
    const DraftCounts counts = engine.scheduler.take_draft_counts();
    CHECK(counts.right > 450);
    CHECK(counts.right <= counts.guesses);
    // Each token once, but for the last one, whose sequence had ended.
    CHECK(engine.pages.tokens_drafted - before <= 100 + 600 - 1);
    CHECK(engine.pages.tokens_drafted - before >= 100 + 600 - 1 - kLayerGuessesMax);
  }
}

TEST_CASE("guesses of the layer stop where a request's tokens or the context end") {
  for (int max_tokens = 1; max_tokens < 40; ++max_tokens) {
    const GenerateRequest request = request_of({5, 6, 7}, max_tokens, kRepeatingSeed);
    for (const SchedulerLimits& limits : {drafting_limits(), pipeline_limits(2)}) {
      FakeEngine engine(limits);
      CHECK(engine.ask(1, request).tokens == serial(request).tokens);
    }
  }
  const GenerateRequest request = request_of(fake_text(50, 1), 100, kRepeatingSeed);
  for (SchedulerLimits limits : {drafting_limits(0), drafting_limits(0, 5), drafting_limits(0, 16),
                                 pipeline_limits(2), pipeline_limits(3)}) {
    limits.context = 70;
    FakeEngine engine(limits);
    const FakeAnswer answer = engine.ask(1, request);
    CHECK(engine.scheduler.take_draft_counts().guesses > 0);
    limits.has_draft_layer = false;
    CHECK(answer.tokens == alone(request, limits).tokens);
    CHECK(answer.end == "length");
  }
}

TEST_CASE("a pipeline makes no guesses for later steps that would not use them") {
  const auto ordered = [](const Step& step) {
    int count = 0;
    for (const NextGuesses& each : step.next_guesses) count += each.count;
    return count;
  };
  // While the other one's prompt is fed.
  FakeEngine engine(pipeline_limits(2));
  engine.submit(1, request_of({5, 6, 7}, 300, kRepeatingSeed));
  for (int i = 0; i < 20 && engine.plan(); ++i) engine.complete();
  engine.submit(2, request_of(fake_text(900, 3), 20, kRepeatingSeed));
  int fed = 0, beside = 0, after = 0;
  while (engine.plan()) {
    const bool is_fed =
        std::any_of(engine.step.next_guesses.begin(), engine.step.next_guesses.end(),
                    [](const auto& each) { return each.token_after >= 0; });
    fed += is_fed ? 1 : 0;
    (is_fed ? beside : after) += ordered(engine.step);
    engine.complete();
  }
  CHECK(fed > 5);
  CHECK(beside == 0);
  CHECK(after > 100);
  // Where the request says what comes.
  const GenerateRequest plain = request_of(fake_text(20, 3), 400, kRepeatingSeed);
  GenerateRequest told = plain;
  told.guess = serial(plain).tokens;
  FakeEngine other(pipeline_limits(2));
  other.submit(1, told);
  int needless = 0;
  for (int steps = 0; other.plan(); ++steps) {
    if (steps > 0) needless += ordered(other.step);
    other.complete();
  }
  CHECK(needless <= kLayerGuessesMax);
  CHECK(other.answer(1).tokens == told.guess);
}

TEST_CASE("there are no guesses where batches are too small for the blocks of two sequences") {
  const GenerateRequest request = request_of(fake_text(10, 1), 40, kRepeatingSeed);
  for (const int tokens_max : {11, 12}) {
    SchedulerLimits limits = drafting_limits(0, 5);
    limits.tokens_max = tokens_max;
    FakeEngine engine(limits);
    CHECK(engine.ask(1, request).tokens == serial(request).tokens);
    CHECK((engine.scheduler.take_draft_counts().guesses > 0) == (tokens_max == 12));
  }
}

TEST_CASE("requests that come, share beginnings and are cancelled at any time keep their texts") {
  const int states = states_needed(kFakeLimits.sequences_max);
  for (const SchedulerLimits& kind :
       {drafting_limits(), drafting_limits(states), drafting_limits(0, 5), model_limits(),
        model_limits(2), model_limits(3), pipeline_limits(2), pipeline_limits(4),
        pipeline_limits(3, states)}) {
    std::mt19937 random(17);
    const auto below = [&](int end) {
      return static_cast<int>(random() % static_cast<unsigned>(end));
    };
    for (int round = 0; round < 60; ++round) {
      CAPTURE(round);
      SchedulerLimits limits = kind;
      limits.tokens_max = 8 + below(120);
      FakeEngine engine(limits);
      std::vector<GenerateRequest> requests;
      std::vector<bool> is_cancelled;
      const int count = 1 + below(6);
      for (int steps = 0; steps < 4000; ++steps) {
        const auto number = static_cast<int>(requests.size());
        if (number < count && below(20) == 0) {
          std::vector<int32_t> prompt = fake_text(1 + below(300), below(2));
          const uint64_t seed = below(2) == 0 ? kRepeatingSeed : 3;
          requests.push_back(request_of(std::move(prompt), 1 + below(150), seed));
          if (below(4) == 0) requests.back().draft_tokens = 8;
          is_cancelled.push_back(false);
          engine.submit(static_cast<uint64_t>(number), requests.back());
        }
        if (engine.plan()) engine.complete();
        if (number > 0 && below(150) == 0) {
          const auto one = static_cast<size_t>(below(number));
          if (engine.scheduler.cancel(one)) is_cancelled[one] = true;
        }
      }
      engine.run();
      for (size_t i = 0; i < requests.size(); ++i) {
        if (is_cancelled[i]) continue;
        CAPTURE(i);
        CHECK(engine.answer(i).tokens == serial(requests[i], kind.states).tokens);
      }
      const auto counts = engine.scheduler.page_counts();
      CHECK(counts.free + counts.cached == counts.all);
      CHECK(counts.snapshots + counts.free_states == kind.states);
    }
  }
}

TEST_CASE("a draft model sees each token once, also those that it guessed right") {
  const GenerateRequest request = request_of(fake_text(100, 5), 600, kRepeatingSeed);
  for (const int stages : {1, 2, 4}) {
    CAPTURE(stages);
    FakeEngine engine(model_limits(stages));
    engine.submit(1, request);
    CHECK(engine.run() < 200);
    CHECK(engine.answer(1).tokens == serial(request).tokens);
    const DraftCounts counts = engine.scheduler.take_draft_counts();
    CHECK(counts.right > 450);
    // In passes: all known tokens, less the right guesses but the last one of each step.
    CHECK(engine.pages.tokens_drafted <=
          100 + 600 - static_cast<int64_t>(counts.right - counts.steps));
  }
}

TEST_CASE("a draft model goes on from pages that another request left, and not from the disk") {
  const GenerateRequest first = request_of(fake_text(300, 4), 100, kRepeatingSeed);
  GenerateRequest second = first;
  const FakeAnswer expected = serial(first);
  second.prompt.insert(second.prompt.end(), expected.tokens.begin(), expected.tokens.end());
  for (const int stages : {1, 3}) {
    CAPTURE(stages);
    FakeDisk disk;
    FakeEngine engine(model_limits(stages), &disk);
    CHECK(engine.ask(1, first).tokens == expected.tokens);
    const int64_t before = engine.pages.tokens_drafted;
    CHECK(engine.ask(2, second).tokens == serial(second).tokens);
    CHECK(engine.answer(2).cached_tokens >= 384);
    CHECK(engine.pages.tokens_drafted - before <= 400 + 100 - 384);
    engine.save();
    FakeEngine later(model_limits(stages), &disk);  // its guesses look at all tokens: check_chain()
    CHECK(later.ask(3, second).tokens == serial(second).tokens);
    CHECK(later.answer(3).cached_tokens >= 384);
    CHECK(later.scheduler.take_draft_counts().right > 0);
    CHECK(later.pages.tokens_drafted >= 400);
  }
}

TEST_CASE("a draft model rests while many sequences run, and catches up afterwards") {
  FakeEngine engine(model_limits());
  const GenerateRequest longest = request_of(fake_text(50, 1), 400, kRepeatingSeed);
  engine.submit(0, longest);
  for (uint64_t i = 1; i < 4; ++i) engine.submit(i, request_of(fake_text(30, 2), 60, i));
  engine.run();
  CHECK(engine.answer(0).tokens == serial(longest).tokens);
  CHECK(engine.scheduler.take_draft_counts().right > 100);
}

TEST_CASE("the layer's logits are refused where there is none, or no room for its blocks") {
  GenerateRequest request = request_of({1, 2}, 2, 1);
  request.draft_logits = true;
  const auto submit = [&](const SchedulerLimits& limits) {
    return Scheduler(limits).submit(1, request);
  };
  CHECK(submit(kFakeLimits).error().code == ErrorCode::kUnsupported);
  SchedulerLimits limits = drafting_limits(0, 5);
  CHECK(submit(limits).ok());
  limits.context = 2 + 2 + 5;
  CHECK(submit(limits).ok());
  limits.context -= 1;
  CHECK(submit(limits).error().message ==
        "the draft layer's logits need 9 positions, the context holds 8");
  limits = drafting_limits(0, 5);
  limits.tokens_max = 5;
  CHECK(submit(limits).error().message ==
        "the draft layer's logits need batches of 6 tokens, these have 5: raise the number of "
        "tokens in a batch");
}

TEST_CASE("pages are saved after a request that ends with guesses, and go on from the disk") {
  const GenerateRequest plain = request_of(fake_text(300, 4), 200, kRepeatingSeed);
  const FakeAnswer expected = serial(plain);
  uint64_t guesses = 0;
  // Ends with each of some tokens, and so at any place of a step's guesses.
  for (size_t last = 40; last < 80; ++last) {
    const SchedulerLimits limits = last % 2 == 0 ? drafting_limits() : pipeline_limits(2);
    CAPTURE(last);
    GenerateRequest request = plain;
    request.stop_ids = {expected.tokens[last]};
    FakeDisk disk;
    FakeEngine engine(limits, &disk);
    const FakeAnswer answer = engine.ask(1, request);
    CHECK(answer.end == "stop");
    guesses += engine.scheduler.take_draft_counts().guesses;
    const int saved = engine.save();
    CHECK(saved >= 300 / kPagePositions);
    // The pages lack the entries of the request's last step: guesses may be worse, but no more.
    FakeEngine later(limits, &disk);
    later.pages.checks_entries = false;
    CHECK(later.ask(1, plain).tokens == expected.tokens);
    CHECK(later.answer(1).cached_tokens >= 256);
  }
  CHECK(guesses > 0);
}
