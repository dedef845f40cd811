// FakePages: what a model would do with the steps of a scheduler, over pages that each have one
// number for a position. A position's number is made of its token and of numbers in all pages
// before, as they are found there, so that a page that holds something else than it should changes
// the text. Steps are computed in order, like on every rank.
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "engine/scheduler.h"
#include "kernels/kernels.h"

namespace lockstep {

constexpr int32_t kPoison = 13;  // a token after which no logit is a number
// From this seed on texts repeat themselves, but for one token in sixteen.
constexpr uint64_t kRepeatingSeed = 100;

class FakePages {
 public:
  explicit FakePages(const SchedulerLimits& limits)
      : vocab_size_(limits.vocab_size),
        numbers_(static_cast<size_t>(pages_needed(limits)) * kPagePositions, 0) {}

  std::vector<Choice> compute(const Step& step) {
    const Batch& batch = step.batch;
    std::vector<uint64_t> states;
    for (size_t i = 0; i < batch.tokens.size(); ++i) {
      const auto list = static_cast<size_t>(batch.list_offsets[i]);
      states.push_back(compute(batch.tokens[i], batch.positions[i], &batch.page_lists[list]));
    }
    tokens_computed += batch.token_count();
    std::vector<Choice> choices;
    for (size_t i = 0; i < step.requests.size(); ++i) {
      const uint64_t state = states[static_cast<size_t>(batch.outputs[i])];
      Choice& choice = choices.emplace_back();
      choice.is_number = state != kBroken;
      if (!choice.is_number || !step.requests[i].wants_token) continue;
      choice.token = token_of(state, step.requests[i]);
    }
    return choices;
  }

  int64_t tokens_computed = 0;

 private:
  static constexpr uint64_t kBroken = ~uint64_t{0};

  static uint64_t mix(uint64_t a, uint64_t b) {
    a = (a ^ b) * 0xff51afd7ed558ccd;
    return (a ^ (a >> 32)) & 0x7fffffffffffffff;
  }
  uint64_t& at(int32_t page, int slot) {
    return numbers_[static_cast<size_t>(page) * kPagePositions + static_cast<size_t>(slot)];
  }
  uint64_t compute(int32_t token, int position, const int32_t* pages) {
    const int page = position / kPagePositions, slot = position % kPagePositions;
    uint64_t state = mix(static_cast<uint64_t>(token) + 1, static_cast<uint64_t>(position));
    bool is_broken = token == kPoison;
    const auto look_at = [&](uint64_t number) {
      is_broken |= number == kBroken;
      state = mix(state, number);
    };
    for (int before = 0; before < page; ++before) {
      look_at(at(pages[before], slot));
      look_at(at(pages[before], kPagePositions - 1));
    }
    if (slot > 0) look_at(at(pages[page], slot - 1));
    return at(pages[page], slot) = is_broken ? kBroken : state;
  }
  // Of few, so that texts come together again; not the token that breaks.
  int32_t token_of(uint64_t state, const ChoiceRequest& request) const {
    const uint64_t seed = request.sampling.seed;
    if (seed >= kRepeatingSeed && state % 16 != 0) return 100 + request.position % 20;
    const auto token = static_cast<int32_t>(mix(state, seed) % static_cast<uint64_t>(vocab_size_));
    return token == kPoison ? kPoison + 1 : token;
  }

  int vocab_size_;
  std::vector<uint64_t> numbers_;  // (pages, kPagePositions)
};

struct FakeAnswer {
  std::vector<int32_t> tokens;
  int cached_tokens = -1;
  std::string end;  // empty: it has not ended
};

class FakeAnswers final : public EngineEvents {
 public:
  void on_start(uint64_t request, int cached_tokens) override {
    CHECK(answers[request].cached_tokens == -1);
    CHECK(answers[request].tokens.empty());
    answers[request].cached_tokens = cached_tokens;
  }
  void on_token(uint64_t request, int32_t token) override {
    CHECK(answers[request].cached_tokens >= 0);
    answers[request].tokens.push_back(token);
  }
  void on_logits(uint64_t, std::span<const float>) override {}
  void on_end(uint64_t request, FinishReason reason) override {
    end(request, reason == FinishReason::kStop ? "stop" : "length");
  }
  void on_error(uint64_t request, const Error& error) override { end(request, error.message); }

  std::map<uint64_t, FakeAnswer> answers;
  int ended = 0;

 private:
  void end(uint64_t request, std::string how) {
    CHECK(answers[request].end.empty());
    answers[request].end = std::move(how);
    ++ended;
  }
};

// A scheduler and what computes its steps, the oldest of which come back when asked.
class FakeEngine {
 public:
  explicit FakeEngine(const SchedulerLimits& limits)
      : scheduler(limits), pages(limits), steps_max_(steps_in_flight_max(limits.stages)) {}

  // False if there is nothing to plan now.
  bool plan(const StepBudget* budget = nullptr) {
    if (scheduler.steps_in_flight() >= steps_max_) return false;
    if (!scheduler.plan(step, budget)) return false;
    choices_.push_back(pages.compute(step));
    hidden_.emplace_back(step.batch.hidden_outputs.size(), 1.0f);
    return true;
  }
  void complete() {
    REQUIRE(scheduler.complete(choices_.front(), hidden_.front(), events).ok());
    choices_.pop_front();
    hidden_.pop_front();
  }
  // Until nothing is left to do; returns the steps.
  int run() {
    int steps = 0;
    for (; steps < 100'000; ++steps) {
      while (plan()) {
      }
      if (choices_.empty()) return steps;
      complete();
    }
    FAIL("it does not end");
    return steps;
  }
  FakeAnswer answer(uint64_t id) { return events.answers[id]; }
  // One request alone.
  FakeAnswer ask(uint64_t id, const GenerateRequest& request) {
    REQUIRE(scheduler.submit(id, request).ok());
    run();
    return answer(id);
  }

  Scheduler scheduler;
  FakePages pages;
  FakeAnswers events;
  Step step;  // planned last

 private:
  int steps_max_;
  std::deque<std::vector<Choice>> choices_;
  std::deque<std::vector<float>> hidden_;
};

}  // namespace lockstep
