#include "engine/scheduler.h"

#include <doctest/doctest.h>

#include <map>
#include <string>

using namespace lockstep;

namespace {

constexpr SchedulerLimits kLimits{
    .sequences_max = 2, .waiting_max = 2, .tokens_max = 10, .context = 100, .vocab_size = 50};

struct Events final : EngineEvents {
  void on_token(uint64_t request, int32_t token) override { tokens[request].push_back(token); }
  void on_logits(uint64_t request, std::span<const float> row) override {
    rows[request] += row.empty() ? 0 : 1;
  }
  void on_end(uint64_t request, FinishReason reason) override {
    ends[request] = reason == FinishReason::kStop ? "stop" : "length";
  }
  void on_error(uint64_t request, const Error& error) override { ends[request] = error.message; }

  std::map<uint64_t, std::vector<int32_t>> tokens;
  std::map<uint64_t, int> rows;
  std::map<uint64_t, std::string> ends;
};

// Plans one step and completes it with choices that count up from `token`.
Step run_step(Scheduler& scheduler, Events& events, int32_t token) {
  static const float kRow[1] = {0};
  Step step;
  scheduler.plan(step);
  REQUIRE(step.batch.outputs.size() == step.requests.size());
  std::vector<Choice> choices;
  for (const ChoiceRequest& request : step.requests) {
    Choice& choice = choices.emplace_back();
    if (request.wants_token) choice.token = token++;
    if (request.wants_logits) choice.logits = kRow;
  }
  scheduler.complete(choices, {}, events);
  return step;
}

std::vector<int32_t> prompt_of(int size) {
  return std::vector<int32_t>(static_cast<size_t>(size), 7);
}

}  // namespace

TEST_CASE("a request is fed, chosen for and ended at max_tokens") {
  Scheduler scheduler(kLimits);
  Events events;
  REQUIRE(scheduler.submit(1, {.prompt = prompt_of(3), .max_tokens = 2}).ok());
  const Step first = run_step(scheduler, events, 20);
  CHECK(first.batch.tokens == std::vector<int32_t>{7, 7, 7});
  CHECK(first.batch.positions == std::vector<int32_t>{0, 1, 2});
  CHECK(first.batch.outputs == std::vector<int32_t>{2});
  CHECK(first.requests[0].position == 3);
  const Step second = run_step(scheduler, events, 21);
  CHECK(second.batch.tokens == std::vector<int32_t>{20});
  CHECK(second.batch.positions == std::vector<int32_t>{3});
  CHECK(events.tokens[1] == std::vector<int32_t>{20, 21});
  CHECK(events.ends[1] == "length");
  CHECK(!scheduler.has_work());
}

TEST_CASE("logits that are no numbers end their sequence alone, and say after how many tokens") {
  static const float kRow[1] = {0};
  Scheduler scheduler(kLimits);
  Events events;
  REQUIRE(
      scheduler.submit(1, {.prompt = prompt_of(4), .max_tokens = 2, .prompt_logits = true}).ok());
  REQUIRE(scheduler.submit(2, {.prompt = prompt_of(2), .max_tokens = 2}).ok());
  Step step;
  scheduler.plan(step);
  REQUIRE(step.requests.size() == 5);
  std::vector<Choice> choices(5, Choice{.logits = kRow});
  choices[1].is_number = choices[2].is_number = false;
  choices[4] = {.token = 9};
  scheduler.complete(choices, {}, events);
  CHECK(events.rows[1] == 1);
  CHECK(events.ends[1].starts_with("the logits after 2 tokens are not numbers (NaN or infinite)"));
  CHECK(events.tokens[2] == std::vector<int32_t>{9});
  run_step(scheduler, events, 10);
  CHECK(events.ends[2] == "length");
  CHECK(!scheduler.has_work());
}

TEST_CASE("an end of sequence is not reported as a token") {
  Scheduler scheduler(kLimits);
  Events events;
  REQUIRE(scheduler.submit(1, {.prompt = prompt_of(1), .max_tokens = 9, .stop_ids = {2, 31}}).ok());
  run_step(scheduler, events, 30);
  run_step(scheduler, events, 31);
  CHECK(events.tokens[1] == std::vector<int32_t>{30});
  CHECK(events.ends[1] == "stop");
}

TEST_CASE("a long prompt is fed in chunks beside a decoding sequence, which goes first") {
  Scheduler scheduler(kLimits);
  Events events;
  REQUIRE(scheduler.submit(1, {.prompt = prompt_of(2), .max_tokens = 50}).ok());
  run_step(scheduler, events, 10);
  REQUIRE(scheduler.submit(2, {.prompt = prompt_of(25), .max_tokens = 1}).ok());
  const Step step = run_step(scheduler, events, 11);
  CHECK(step.batch.token_count() == kLimits.tokens_max);
  CHECK(step.batch.tokens[0] == 10);
  CHECK(step.batch.outputs.size() == 1);
  for (int i = 0; i < 2; ++i) run_step(scheduler, events, 12 + i);
  CHECK(events.ends[2] == "length");
  CHECK(events.tokens[1].size() == 4);
}

TEST_CASE("a request's own chunk is kept, and prompt logits are asked for every prompt token") {
  Scheduler scheduler(kLimits);
  Events events;
  REQUIRE(
      scheduler
          .submit(4, {.prompt = prompt_of(5), .max_tokens = 0, .prompt_logits = true, .chunk = 2})
          .ok());
  for (const int expected : {2, 2, 1}) {
    CHECK(run_step(scheduler, events, 0).batch.token_count() == expected);
  }
  CHECK(events.rows[4] == 5);
  CHECK(events.tokens[4].empty());
  CHECK(events.ends[4] == "length");
}

TEST_CASE("only so many run together, the others wait for their turn, and more are refused") {
  Scheduler scheduler(kLimits);
  Events events;
  for (uint64_t id = 1; id <= 2; ++id) {
    REQUIRE(scheduler.submit(id, {.prompt = prompt_of(1), .max_tokens = 3}).ok());
  }
  run_step(scheduler, events, 10);
  for (uint64_t id = 3; id <= 4; ++id) {
    REQUIRE(scheduler.submit(id, {.prompt = prompt_of(1), .max_tokens = 1}).ok());
  }
  const Status refused = scheduler.submit(5, {.prompt = prompt_of(1)});
  REQUIRE(!refused.ok());
  CHECK(refused.error().code == ErrorCode::kExhausted);
  CHECK(run_step(scheduler, events, 12).batch.token_count() == 2);
  run_step(scheduler, events, 14);
  CHECK(events.ends.size() == 2);
  run_step(scheduler, events, 16);
  CHECK(events.ends.size() == 4);
}

TEST_CASE("requests that can never run are refused with the reason") {
  Scheduler scheduler(kLimits);
  CHECK(scheduler.submit(1, {.prompt = {}}).error().code == ErrorCode::kInvalidArgument);
  CHECK(scheduler.submit(1, {.prompt = {50}}).error().code == ErrorCode::kInvalidArgument);
  CHECK(scheduler.submit(1, {.prompt = {-1}}).error().code == ErrorCode::kInvalidArgument);
  const Status long_prompt = scheduler.submit(1, {.prompt = prompt_of(101)});
  CHECK(long_prompt.error().code == ErrorCode::kExhausted);
  CHECK(long_prompt.error().message.find("101 tokens, the context holds 100") != std::string::npos);
  CHECK(!scheduler.has_work());
}

TEST_CASE("a context that is full ends the sequence") {
  Scheduler scheduler(kLimits);
  Events events;
  REQUIRE(scheduler.submit(1, {.prompt = prompt_of(99), .max_tokens = 50}).ok());
  for (int i = 0; i < 20 && scheduler.has_work(); ++i) run_step(scheduler, events, 5);
  CHECK(events.ends[1] == "length");
  CHECK(events.tokens[1].size() == 2);  // the last one is chosen at position 99, not fed
}

TEST_CASE("cancelled requests leave at once, waiting or running, and free their state") {
  Scheduler scheduler(kLimits);
  Events events;
  for (uint64_t id = 1; id <= 3; ++id) {
    if (id == 3) run_step(scheduler, events, 1);
    REQUIRE(scheduler.submit(id, {.prompt = prompt_of(4), .max_tokens = 40}).ok());
  }
  CHECK(scheduler.cancel(1));
  CHECK(scheduler.cancel(3));
  CHECK(!scheduler.cancel(1));
  CHECK(!scheduler.cancel(77));
  CHECK(run_step(scheduler, events, 9).batch.token_count() == 1);
  CHECK(scheduler.cancel(2));
  CHECK(!scheduler.has_work());
  CHECK(events.ends.empty());
}

TEST_CASE("pages never run out, however full every context gets") {
  Scheduler scheduler(kLimits);
  Events events;
  uint64_t id = 0;
  for (int round = 0; round < 300; ++round) {
    while (
        scheduler.submit(++id, {.prompt = prompt_of(1 + round % 100), .max_tokens = 1 + round % 90})
            .ok()) {
    }
    run_step(scheduler, events, 3);
  }
  CHECK(events.ends.size() > 20);
}
