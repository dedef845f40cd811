// Pages of state shared by requests: computed once, or not shared, reused or evicted, and never
// changing a text.
#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <set>
#include <vector>

#include "support/fake_pages.h"
#include "support/joined.h"

using namespace lockstep;

namespace {

// No sequence runs: every page that is not cached is free.
bool all_pages_are_there(const FakeEngine& engine, int states = 0) {
  const auto counts = engine.scheduler.page_counts();
  return counts.free + counts.cached == counts.all &&
         counts.snapshots + counts.free_states == states;
}

}  // namespace

TEST_CASE("the next turn of a conversation feeds the new tokens and at most one page") {
  FakeEngine engine(kFakeLimits);
  std::vector<int32_t> conversation = fake_text(300, 1);
  for (uint64_t turn = 0; turn < 6; ++turn) {
    const GenerateRequest request{.prompt = conversation, .max_tokens = 50};
    const FakeAnswer expected = alone(request);
    const int64_t before = engine.pages.tokens_computed;
    const FakeAnswer answer = engine.ask(turn, request);
    CHECK(answer.tokens == expected.tokens);
    const auto size = static_cast<int>(conversation.size());
    // All but the last token of the previous turn was computed.
    const int known = turn == 0 ? 0 : size - 31;
    CHECK(answer.cached_tokens == known / kPagePositions * kPagePositions);
    CHECK(engine.pages.tokens_computed - before == size - answer.cached_tokens + 49);
    conversation = joined(joined(conversation, answer.tokens), fake_text(30, 40));
  }
  CHECK(all_pages_are_there(engine));
}

TEST_CASE("with recurrent layers too: an answer leaves a snapshot at each page") {
  SchedulerLimits limits = kFakeLimits;
  limits.states = states_needed(limits.sequences_max);
  FakeEngine engine(limits);
  std::vector<int32_t> conversation = fake_text(300, 1);
  for (uint64_t turn = 0; turn < 6; ++turn) {
    const GenerateRequest request{.prompt = conversation, .max_tokens = 50};
    const FakeAnswer answer = engine.ask(turn, request);
    CHECK(answer.tokens == alone(request, limits).tokens);
    const auto size = static_cast<int>(conversation.size());
    const int known = turn == 0 ? 0 : size - 31;
    CHECK(answer.cached_tokens == known / kPagePositions * kPagePositions);
    conversation = joined(joined(conversation, answer.tokens), fake_text(30, 40));
  }
  CHECK(all_pages_are_there(engine, limits.states));
}

TEST_CASE("a long prompt leaves snapshots at intervals, of which the oldest are evicted") {
  SchedulerLimits limits = kFakeLimits;
  limits.context = 8192;
  limits.states = states_needed(limits.sequences_max);
  FakeEngine engine(limits);
  const std::vector<int32_t> text = fake_text(5000, 1);
  engine.ask(1, {.prompt = text, .max_tokens = 1});
  CHECK(engine.scheduler.page_counts().snapshots == 5);  // 1024, 2048, 3072, 4096 and 4992
  // A request that differs from there on continues at the snapshot before.
  const std::vector<int32_t> beginning(text.begin(), text.begin() + 2900);
  const GenerateRequest other{.prompt = joined(beginning, fake_text(40, 7)), .max_tokens = 3};
  const FakeAnswer answer = engine.ask(2, other);
  CHECK(answer.cached_tokens == 2048);
  CHECK(answer.tokens == alone(other, limits).tokens);
  for (uint64_t i = 3; i < 40; ++i) {
    engine.ask(i, {.prompt = fake_text(130, static_cast<int32_t>(i)), .max_tokens = 1});
  }
  CHECK(engine.scheduler.page_counts().snapshots <= limits.states);
  CHECK(engine.ask(50, other).cached_tokens == 0);  // its pages are there, their states are not
  CHECK(engine.answer(50).tokens == answer.tokens);
  CHECK(all_pages_are_there(engine, limits.states));
}

TEST_CASE("a running sequence never waits for a state, however many snapshots there are") {
  SchedulerLimits limits = kFakeLimits;
  limits.states = states_needed(limits.sequences_max);
  FakeEngine engine(limits);
  for (uint64_t i = 0; i < 20; ++i) {
    GenerateRequest request{.prompt = fake_text(190, static_cast<int32_t>(i)), .max_tokens = 200};
    request.sampling.seed = kRepeatingSeed;
    request.draft_tokens = 16;
    engine.submit(i, request);
  }
  engine.run();
  for (uint64_t i = 0; i < 20; ++i) CHECK(engine.answer(i).end == "length");
  CHECK(all_pages_are_there(engine, limits.states));
}

TEST_CASE("guesses at a page's border leave room for its snapshot, and for other sequences") {
  SchedulerLimits limits = kFakeLimits;
  limits.sequences_max = 2;
  limits.context = 4096;
  limits.states = states_needed(limits.sequences_max);
  // Steps of as many guesses as there can be reach the border after another number of tokens each.
  for (size_t size = 48; size < 58; ++size) {
    CAPTURE(size);
    FakeEngine engine(limits);
    const std::vector<int32_t> shared = fake_text(970, 200);
    engine.ask(1, {.prompt = shared, .max_tokens = 1});
    GenerateRequest request{.prompt = fake_text(static_cast<int>(size), 3), .max_tokens = 300};
    const FakeAnswer wanted = alone(request, limits);
    request.guess = wanted.tokens;
    engine.submit(2, request);
    uint64_t next_id = 3;
    while (engine.answer(2).end.empty()) {
      // Another one continues at a snapshot and leaves two, in the step of the guesses.
      const bool is_border = (size + engine.answer(2).tokens.size()) % kPagePositions == 0;
      if (is_border) {
        engine.submit(next_id,
                      {.prompt = joined(shared, fake_text(200, static_cast<int32_t>(next_id))),
                       .max_tokens = 1});
        ++next_id;
      }
      REQUIRE(engine.plan());
      engine.complete();
    }
    engine.run();
    CHECK(engine.answer(2).tokens == wanted.tokens);
    CHECK(all_pages_are_there(engine, limits.states));
  }
}

TEST_CASE("the last token of a prompt is fed, even if all of it is known") {
  for (const int size : {1, 63, 64, 65, 127, 128, 129}) {
    CAPTURE(size);
    FakeEngine engine(kFakeLimits);
    const GenerateRequest request{.prompt = fake_text(size, 3), .max_tokens = 3};
    const FakeAnswer first = engine.ask(1, request);
    CHECK(first.cached_tokens == 0);
    const FakeAnswer second = engine.ask(2, request);
    CHECK(second.tokens == first.tokens);
    CHECK(second.cached_tokens == (size - 1) / kPagePositions * kPagePositions);
    CHECK(all_pages_are_there(engine));
  }
}

TEST_CASE("a text that differs in its last token shares nothing of that page") {
  FakeEngine engine(kFakeLimits);
  std::vector<int32_t> prompt = fake_text(200, 5);
  engine.ask(1, {.prompt = prompt, .max_tokens = 1});
  prompt[127] += 1;
  const GenerateRequest other{.prompt = prompt, .max_tokens = 4};
  const FakeAnswer answer = engine.ask(2, other);
  CHECK(answer.cached_tokens == 64);
  CHECK(answer.tokens == alone(other).tokens);
}

TEST_CASE("requests that begin alike compute their beginning once, one page after the other") {
  for (const int stages : {1, 3}) {
    CAPTURE(stages);
    SchedulerLimits limits = kFakeLimits;
    limits.stages = stages;
    FakeEngine engine(limits);
    const std::vector<int32_t> shared = fake_text(500, 9);  // 7 pages and 52 tokens
    std::vector<GenerateRequest> requests;
    for (int i = 0; i < 4; ++i) {
      requests.push_back({.prompt = joined(shared, fake_text(20, 50 * i)), .max_tokens = 8});
      REQUIRE(engine.scheduler.submit(static_cast<uint64_t>(i), requests.back()).ok());
    }
    engine.run();
    int computed = 0;
    for (size_t i = 0; i < requests.size(); ++i) {
      const FakeAnswer answer = engine.answer(i);
      CHECK(answer.tokens == alone(requests[i]).tokens);
      CHECK(answer.cached_tokens == (i == 0 ? 0 : 448));
      computed += 520 - answer.cached_tokens + 7;
    }
    CHECK(engine.pages.tokens_computed == computed);
    CHECK(all_pages_are_there(engine));
  }
}

TEST_CASE("a request waiting for another's beginning continues when that one is cancelled") {
  SchedulerLimits limits = kFakeLimits;
  limits.tokens_max = 100;
  FakeEngine engine(limits);
  const GenerateRequest request{.prompt = fake_text(600, 2), .max_tokens = 5};
  REQUIRE(engine.scheduler.submit(1, request).ok());
  REQUIRE(engine.scheduler.submit(2, request).ok());
  REQUIRE(engine.plan());
  CHECK(engine.step.batch.token_count() == 100);  // only of the first one
  CHECK(std::set<int32_t>(engine.step.batch.list_offsets.begin(),
                          engine.step.batch.list_offsets.end())
            .size() == 1);
  engine.complete();
  CHECK(engine.scheduler.cancel(1));
  REQUIRE(engine.plan());
  CHECK(engine.step.batch.positions.front() == 64);  // the one complete page is kept
  engine.complete();
  engine.run();
  CHECK(engine.answer(2).tokens == alone(request).tokens);
  CHECK(engine.answer(2).cached_tokens == 64);
  CHECK(all_pages_are_there(engine));
}

TEST_CASE("a cancelled request returns its pages before the next step") {
  FakeEngine engine(kFakeLimits);
  const int all = engine.scheduler.page_counts().all;
  REQUIRE(engine.scheduler.submit(1, {.prompt = fake_text(70, 2), .max_tokens = 500}).ok());
  for (int i = 0; i < 80; ++i) {
    REQUIRE(engine.plan());
    engine.complete();
  }
  CHECK(engine.scheduler.page_counts().free == all - 3);  // 149 positions
  CHECK(engine.scheduler.cancel(1));
  CHECK(engine.scheduler.page_counts().free == all - 2);  // two are cached and can be evicted
  CHECK(all_pages_are_there(engine));
  CHECK(!engine.plan());
}

TEST_CASE("requests that report on every position skip none, and their pages are reusable") {
  FakeEngine engine(kFakeLimits);
  const std::vector<int32_t> prompt = fake_text(300, 4);
  GenerateRequest rows{.prompt = prompt, .max_tokens = 1, .prompt_logits = true};
  GenerateRequest mean{.prompt = prompt, .max_tokens = 0, .pooling = Pooling::kMean};
  GenerateRequest last{.prompt = prompt, .max_tokens = 0, .pooling = Pooling::kLast};
  CHECK(engine.ask(1, rows).cached_tokens == 0);
  CHECK(engine.ask(2, rows).cached_tokens == 0);
  CHECK(engine.ask(3, mean).cached_tokens == 0);
  CHECK(engine.ask(4, last).cached_tokens == 256);
  CHECK(engine.ask(5, {.prompt = prompt, .max_tokens = 1}).cached_tokens == 256);
  const auto counts = engine.scheduler.page_counts();
  CHECK(counts.cached == 4);  // the same pages each time
  CHECK(all_pages_are_there(engine));
}

TEST_CASE("pages whose logits were NaN are not kept, nor those computed after them") {
  FakeEngine engine(kFakeLimits);
  std::vector<int32_t> prompt = fake_text(300, 4);
  prompt[150] = kPoison;
  const FakeAnswer broken = engine.ask(1, {.prompt = prompt, .max_tokens = 4});
  CHECK(broken.end.starts_with("the logits after 300 tokens are not numbers"));
  CHECK(engine.scheduler.page_counts().cached == 0);
  // Two that begin alike run together: the second reuses pages of the first, and both end.
  REQUIRE(engine.scheduler.submit(2, {.prompt = prompt, .max_tokens = 4}).ok());
  prompt.push_back(7);
  REQUIRE(engine.scheduler.submit(3, {.prompt = prompt, .max_tokens = 4}).ok());
  engine.run();
  CHECK(engine.answer(2).end.starts_with("the logits after 300 tokens"));
  CHECK(engine.answer(3).end.starts_with("the logits after 301 tokens"));
  CHECK(engine.scheduler.page_counts().free == engine.scheduler.page_counts().all);
}

TEST_CASE("an answer that loses its grammar keeps its pages") {
  Scheduler scheduler(kFakeLimits);
  FakeAnswers events;
  Step step;
  REQUIRE(scheduler.submit(1, {.prompt = fake_text(130, 4), .max_tokens = 4}).ok());
  REQUIRE(scheduler.plan(step));
  const std::vector<SampledToken> lost{{.is_lost = true}};
  REQUIRE(scheduler.complete(lost, {}, events).ok());
  CHECK(events.ended == 1);
  CHECK(scheduler.page_counts().cached == 2);
  CHECK(scheduler.page_counts().free == scheduler.page_counts().all - 2);
}

TEST_CASE("a pool that is full of cached pages evicts the least recently used ones") {
  SchedulerLimits limits = kFakeLimits;
  limits.sequences_max = 1;
  limits.context = 320;  // five pages in all
  FakeEngine engine(limits);
  const auto ask = [&](uint64_t id, int32_t begin) {
    return engine.ask(id, {.prompt = fake_text(130, begin), .max_tokens = 1}).cached_tokens;
  };
  CHECK(ask(1, 10) == 0);
  CHECK(ask(2, 20) == 0);
  CHECK(engine.scheduler.page_counts().cached == 4);
  CHECK(ask(3, 10) == 128);  // used last
  CHECK(ask(4, 30) == 0);    // evicts pages of the second
  CHECK(ask(5, 10) == 128);
  CHECK(ask(6, 20) == 0);
  CHECK(all_pages_are_there(engine));
}

TEST_CASE("a short prompt is not delayed by a long one, which still progresses") {
  SchedulerLimits limits = kFakeLimits;
  limits.tokens_max = 64;
  FakeEngine engine(limits);
  REQUIRE(engine.scheduler.submit(1, {.prompt = fake_text(900, 1), .max_tokens = 1}).ok());
  REQUIRE(engine.plan());
  engine.complete();
  REQUIRE(engine.scheduler.submit(2, {.prompt = fake_text(90, 300), .max_tokens = 1}).ok());
  int steps = 0;
  while (engine.answer(2).end.empty()) {
    REQUIRE(engine.plan());
    int of_long = 0;
    for (const int32_t position : engine.step.batch.positions) of_long += position >= 64 ? 1 : 0;
    CHECK(of_long >= 32);
    engine.complete();
    ++steps;
  }
  CHECK(steps == 3);
  engine.run();
  CHECK(engine.answer(1).end == "length");
}

TEST_CASE("the first of two long prompts is not slowed down by the second") {
  SchedulerLimits limits = kFakeLimits;
  limits.tokens_max = 100;
  FakeEngine engine(limits);
  REQUIRE(engine.scheduler.submit(1, {.prompt = fake_text(800, 1), .max_tokens = 1}).ok());
  REQUIRE(engine.scheduler.submit(2, {.prompt = fake_text(800, 301), .max_tokens = 1}).ok());
  int steps = 0;
  for (; engine.answer(1).end.empty(); ++steps) {
    REQUIRE(engine.plan());
    engine.complete();
  }
  CHECK(steps == 8);
}

TEST_CASE("prompts keep to the budget while others decode, and have all of it otherwise") {
  FakeEngine engine(kFakeLimits);
  StepBudget budget(4);
  budget.observe({.prompt_tokens = 100}, 0.1);  // 1 ms each
  budget.observe({.decoding = 1}, 0.025);       // 30 prompt tokens fit
  REQUIRE(engine.scheduler.submit(1, {.prompt = fake_text(600, 1), .max_tokens = 400}).ok());
  REQUIRE(engine.plan(&budget));
  CHECK(engine.scheduler.shape().decoding == 0);
  CHECK(engine.scheduler.shape().prompt_tokens == 512);
  engine.complete();
  REQUIRE(engine.plan(&budget));
  engine.complete();
  REQUIRE(engine.scheduler.submit(2, {.prompt = fake_text(200, 401), .max_tokens = 1}).ok());
  REQUIRE(engine.plan(&budget));
  CHECK(engine.scheduler.shape().decoding == 1);
  CHECK(engine.scheduler.shape().prompt_tokens == 30);
  engine.complete();
  engine.run();
}

TEST_CASE("clients take turns, higher priority first, and no client fills the whole queue") {
  SchedulerLimits limits = kFakeLimits;
  limits.sequences_max = 1;
  limits.client_waiting_max = 5;
  FakeEngine engine(limits);
  const auto submit = [&](uint64_t id, uint64_t client, int32_t priority) {
    GenerateRequest request{.prompt = fake_text(4, static_cast<int32_t>(id)), .max_tokens = 1};
    request.client = client;
    request.priority = priority;
    return engine.scheduler.submit(id, request);
  };
  for (uint64_t id = 1; id <= 5; ++id) REQUIRE(submit(id, 77, 0).ok());
  const Status refused = submit(6, 77, 3);
  REQUIRE(!refused.ok());
  CHECK(refused.error().code == ErrorCode::kExhausted);
  CHECK(refused.error().message ==
        "5 requests of this client are already waiting, try again later");
  REQUIRE(submit(7, 88, 0).ok());
  REQUIRE(submit(8, 99, 2).ok());
  for (uint64_t id = 20; id < 40; ++id) REQUIRE(submit(id, 0, 0).ok());  // unknown clients
  std::vector<uint64_t> order;
  for (int i = 0; i < 7; ++i) {
    const int ended = engine.events.ended;
    std::set<uint64_t> before;
    for (const auto& [id, answer] : engine.events.answers) before.insert(id);
    while (engine.events.ended == ended) {
      REQUIRE(engine.plan());
      engine.complete();
    }
    for (const auto& [id, answer] : engine.events.answers) {
      if (!before.contains(id)) order.push_back(id);
    }
  }
  CHECK(order == std::vector<uint64_t>{8, 20, 1, 7, 21, 2, 22});
}

namespace {

struct Case {
  SchedulerLimits limits;
  unsigned seed = 0;
  bool has_budget = false;
};

// Texts that begin alike in many ways, some of which break.
std::vector<int32_t> random_prompt(std::mt19937& random, int size_max,
                                   const std::vector<std::vector<int32_t>>& earlier) {
  std::vector<int32_t> prompt;
  if (!earlier.empty() && random() % 4 != 0) {
    prompt = earlier[random() % earlier.size()];
    prompt.resize(std::min(prompt.size(), 1 + random() % static_cast<size_t>(size_max)));
  }
  const auto more = static_cast<int>(random() % 100);
  prompt = joined(prompt, fake_text(more, static_cast<int32_t>(random() % 3)));
  if (random() % 15 == 0 && !prompt.empty()) prompt[random() % prompt.size()] = kPoison;
  if (prompt.empty()) prompt.push_back(5);
  if (prompt.size() > static_cast<size_t>(size_max)) prompt.resize(static_cast<size_t>(size_max));
  return prompt;
}

GenerateRequest random_request(std::mt19937& random, int context,
                               const std::vector<std::vector<int32_t>>& earlier) {
  GenerateRequest request{.prompt = random_prompt(random, context, earlier),
                          .max_tokens = static_cast<int>(1 + random() % 120)};
  request.sampling.seed = random() % 2 + (random() % 2) * kRepeatingSeed;
  request.draft_tokens = random() % 2 == 0 ? 0 : static_cast<int>(random() % 20);
  request.client = random() % 3;
  request.priority = static_cast<int32_t>(random() % 2);
  if (random() % 8 == 0) request.chunk = static_cast<int>(1 + random() % 90);
  if (random() % 12 == 0) request.prompt_logits = true;
  if (random() % 12 == 0) {
    request.max_tokens = 0;
    request.pooling = random() % 2 == 0 ? Pooling::kMean : Pooling::kLast;
  }
  return request;
}

// Returns how many tokens were reused from pages.
int64_t run_random(const Case& of) {
  std::mt19937 random(of.seed);
  FakeEngine engine(of.limits);
  StepBudget budget(of.limits.sequences_max);
  std::map<uint64_t, GenerateRequest> requests;
  std::set<uint64_t> cancelled;
  std::vector<std::vector<int32_t>> texts;
  constexpr uint64_t kRequests = 150;
  int64_t cached = 0;
  uint64_t next_id = 0;
  const auto is_over = [&] {
    return static_cast<size_t>(engine.events.ended) + cancelled.size() == kRequests;
  };
  for (int round = 0; round < 200'000 && !is_over(); ++round) {
    const unsigned what = random() % 16;
    if (what == 0 && next_id < kRequests) {
      requests[next_id] = random_request(random, of.limits.context, texts);
      engine.submit(next_id, requests[next_id]);
      ++next_id;
    } else if (what == 1 && next_id > 0 && random() % 8 == 0) {
      const uint64_t id = random() % next_id;
      if (engine.scheduler.cancel(id)) CHECK(cancelled.insert(id).second);
    } else if (what < 9) {
      if (!engine.plan(of.has_budget ? &budget : nullptr)) continue;
      const StepShape shape = engine.scheduler.shape();
      budget.observe(shape, 0.02 + 0.001 * shape.prompt_tokens);
    } else if (engine.scheduler.steps_in_flight() > 0) {
      const int ended = engine.events.ended;
      engine.complete();
      if (engine.events.ended == ended) continue;
      for (const auto& [id, answer] : engine.events.answers) {  // continued conversations
        if (!answer.end.empty()) texts.push_back(joined(requests[id].prompt, answer.tokens));
      }
      if (texts.size() > 30) texts.erase(texts.begin(), texts.end() - 30);
    }
  }
  REQUIRE(is_over());
  engine.run();
  for (const auto& [id, request] : requests) {
    CAPTURE(id);
    const FakeAnswer answer = engine.answer(id), expected = alone(request, of.limits);
    if (!cancelled.contains(id)) {
      CHECK(answer.end == expected.end);
      CHECK(answer.tokens == expected.tokens);
      cached += std::max(0, answer.cached_tokens);
    } else {
      REQUIRE(answer.tokens.size() <= expected.tokens.size());
      CHECK(std::equal(answer.tokens.begin(), answer.tokens.end(), expected.tokens.begin()));
    }
  }
  CHECK(all_pages_are_there(engine, of.limits.states));
  CHECK(cancelled.size() > 2);
  return cached;
}

}  // namespace

TEST_CASE("random requests with shared beginnings, cancels and small pools: texts as if alone") {
  unsigned seed = 0;
  int64_t cached[2] = {};  // of models without recurrent layers, and with them
  for (const int stages : {1, 2, 4}) {
    for (const int sequences : {1, 3, 8}) {
      for (const int context : {200, 700}) {
        CAPTURE(stages);
        CAPTURE(sequences);
        CAPTURE(context);
        ++seed;
        for (const bool is_recurrent : {false, true}) {
          cached[is_recurrent ? 1 : 0] +=
              run_random({.limits = {.sequences_max = sequences,
                                     .waiting_max = 1000,
                                     .tokens_max = sequences == 3 ? 48 : 300,
                                     .context = context,
                                     .vocab_size = 1000,
                                     .stages = stages,
                                     .states = is_recurrent ? states_needed(sequences) : 0},
                          .seed = seed,
                          .has_budget = seed % 2 == 0});
        }
      }
    }
  }
  CHECK(cached[0] > 30'000);  // or this shows nothing
  CHECK(cached[1] > 15'000);
}
