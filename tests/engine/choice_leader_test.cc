#include "engine/schedule/choice_leader.h"

#include <doctest/doctest.h>

#include <utility>

using namespace lockstep;

namespace {

constexpr int kVocabulary = 100;

struct Leader {
  GrammarMaker maker{"/nonexistent", [] {}};
  GrammarCache cache{maker};
  ChoiceLeader leader{cache, kVocabulary};

  void submit(uint64_t id, GenerateRequest request) {
    const auto ready = leader.submit(id, std::move(request));
    REQUIRE(ready);
    REQUIRE_MESSAGE(ready->status.ok(), ready->status.error().message);
  }
  // A step that chooses a token of each.
  Step step_of(const std::vector<uint64_t>& sequences) {
    Step step;
    for (const uint64_t sequence : sequences) {
      step.requests.push_back({.position = 4, .wants_token = true, .sequence = sequence});
    }
    leader.attach_slots(step);
    return step;
  }
};

}  // namespace

TEST_CASE("the options of a sequence are in its first step only") {
  Leader at;
  at.submit(7, {.prompt = {1, 2, 3}, .sampling = {.temperature = 1, .seed = 5}, .top_logprobs = 2});
  at.submit(8, {.prompt = {1, 2}, .sampling = {.seed = 6}});
  const Step first = at.step_of({7, 8});
  REQUIRE(first.orders.slots.size() == 2);
  CHECK(first.requests[0].slot == first.orders.slots[0].slot);
  CHECK(first.requests[1].slot == first.orders.slots[1].slot);
  CHECK(first.requests[0].slot != first.requests[1].slot);
  CHECK(first.orders.slots[0].setup.sampling == SamplingOptions{.temperature = 1, .seed = 5});
  CHECK(first.orders.slots[0].setup.top_logprobs == 2);
  CHECK(first.orders.slots[1].setup.top_logprobs == -1);
  const Step second = at.step_of({8, 7});
  CHECK(second.orders.empty());
  CHECK(second.requests[0].slot == first.requests[1].slot);
  CHECK(second.requests[1].slot == first.requests[0].slot);
}

TEST_CASE("the slot of a sequence that has ended is released and used again") {
  Leader at;
  at.submit(7, {.prompt = {1}});
  const int32_t slot = at.step_of({7}).requests[0].slot;
  at.leader.forget(7);
  at.leader.forget(7);
  at.submit(8, {.prompt = {1}, .sampling = {.seed = 9}});
  const Step next = at.step_of({8});
  CHECK(next.orders.released == std::vector<int32_t>{slot});
  CHECK(next.requests[0].slot == slot);
  REQUIRE(next.orders.slots.size() == 1);
  CHECK(next.orders.slots[0].setup.sampling.seed == 9);
}

TEST_CASE("a step without choices fills no slot") {
  Leader at;
  at.submit(7, {.prompt = {1}});
  Step step;
  step.requests.push_back({.position = 1, .wants_logits = true, .sequence = 7});
  at.leader.attach_slots(step);
  CHECK(step.orders.empty());
  CHECK(step.requests[0].slot == -1);
}

TEST_CASE("tokens, end tokens and breakers are sent only where choices use them") {
  Leader at;
  const GenerateRequest plain{.prompt = {1, 2, 3}, .stop_ids = {9}, .dry_breakers = {5}};
  GenerateRequest resumed = plain;
  resumed.resumed_tokens = 1;
  resumed.sampling.repetition_penalty = 1.5f;
  resumed.sampling.penalty_tokens = 2;
  resumed.sampling.dry_multiplier = 1;
  resumed.sampling.dry_tokens = 2;
  resumed.min_tokens = 4;
  at.submit(7, plain);
  at.submit(8, resumed);
  const Step step = at.step_of({7, 8});
  const ChoiceSetup& of_plain = step.orders.slots[0].setup;
  CHECK(of_plain.tokens.empty());
  CHECK(of_plain.stop_ids.empty());
  CHECK(of_plain.dry_breakers.empty());
  const ChoiceSetup& of_resumed = step.orders.slots[1].setup;
  CHECK(of_resumed.answer_begin == 2);
  CHECK(of_resumed.begin == 1);
  CHECK(of_resumed.tokens == std::vector<int32_t>{2, 3});
  CHECK(of_resumed.stop_ids == std::vector<int32_t>{9});
  CHECK(of_resumed.min_tokens == 4);
  CHECK(of_resumed.dry_breakers == std::vector<int32_t>{5});
}
