#include "engine/schedule/step_budget.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

using namespace lockstep;

namespace {

// A machine that reads weights for 20 ms and computes for 1.5 ms per token, whichever takes longer,
// and whose prompts cost more the longer they are.
double machine_seconds(StepShape shape, int position) {
  const double tokens = shape.decoding + shape.prompt_tokens;
  const double prompt = shape.prompt_tokens * (1 + position / 8000.0);
  return 0.002 + std::max(0.020, 0.0015 * (shape.decoding + prompt)) + 1e-6 * tokens;
}

struct FedPrompt {
  std::vector<double> seconds;  // of each step
  int steps = 0;                // until the prompt was fed
};

// `decoding` sequences continue while a prompt of the given number of tokens is fed.
FedPrompt feed(StepBudget& budget, int decoding, int prompt, double noise, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> factor(1, 1 + noise);
  FedPrompt run;
  for (int fed = 0; fed < prompt && run.steps < 100'000; ++run.steps) {
    const int tokens = std::min({budget.prompt_tokens(decoding), 512, prompt - fed});
    const StepShape shape{.decoding = decoding, .prompt_tokens = tokens};
    run.seconds.push_back(machine_seconds(shape, fed) * factor(random));
    budget.observe(shape, run.seconds.back());
    fed += tokens;
  }
  return run;
}

double percentile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1))];
}

}  // namespace

TEST_CASE("prompts have the whole step while no sequence decodes") {
  const StepBudget budget(8);
  CHECK(budget.prompt_tokens(0) == std::numeric_limits<int>::max());
}

TEST_CASE("the cost of decoding is measured before prompts are fed along with it") {
  StepBudget budget(8);
  CHECK(budget.prompt_tokens(4) == 0);
  budget.observe({.decoding = 4}, 0.02);
  CHECK(budget.prompt_tokens(4) == StepBudget::kTokensMin);
  CHECK(budget.prompt_tokens(5) == StepBudget::kTokensMin);  // takes longer than 4, if anything
  CHECK(budget.prompt_tokens(3) == 0);
}

TEST_CASE("a prompt alone gives an upper bound of its tokens' cost next to others") {
  StepBudget budget(8);
  budget.observe({.prompt_tokens = 100}, 0.2);  // 2 ms each
  budget.observe({.decoding = 2}, 0.1);
  CHECK(budget.prompt_tokens(2) == 60);  // 1.2 * 100 ms / 2 ms
  budget.observe({.prompt_tokens = 10}, 0.1);
  CHECK(budget.prompt_tokens(2) == 60);
  budget.observe({.decoding = 2, .prompt_tokens = 60}, 0.4);  // it was too slow
  CHECK(budget.prompt_tokens(2) == 30);
  budget.observe({.prompt_tokens = 100}, 0.2);
  CHECK(budget.prompt_tokens(2) == 30);
}

TEST_CASE("a long prompt stretches decoding steps up to the bound, not beyond") {
  for (const int decoding : {1, 4, 8}) {
    for (const double noise : {0.0, 0.2}) {
      CAPTURE(decoding);
      CAPTURE(noise);
      StepBudget budget(8);
      const double alone = machine_seconds({.decoding = decoding}, 0);
      for (int i = 0; i < 5; ++i) budget.observe({.decoding = decoding}, alone);
      const FedPrompt run = feed(budget, decoding, 8000, noise);
      CHECK(percentile(run.seconds, 0.99) < 2.5 * alone * (1 + noise));
      CHECK(percentile(run.seconds, 0.5) > 1.8 * alone);  // and prompts use their allowance
    }
  }
}

TEST_CASE("a prompt makes progress however slow its tokens are") {
  StepBudget budget(4);
  budget.observe({.decoding = 1}, 0.001);
  for (int i = 0; i < 200; ++i) {
    const int tokens = budget.prompt_tokens(1);
    const bool is_probe = i % (StepBudget::kMixedInRow + 1) == StepBudget::kMixedInRow;
    CHECK(tokens == (is_probe ? 0 : StepBudget::kTokensMin));
    budget.observe({.decoding = 1, .prompt_tokens = tokens}, 0.001 + 1.0 * tokens);
  }
}

TEST_CASE("decoding that becomes slower gives prompts more room") {
  StepBudget budget(8);
  const auto steady = [&](double decode_seconds) {
    int tokens = 0;
    for (int i = 0; i < 2000; ++i) {
      const int next = budget.prompt_tokens(2);
      if (next > 0) tokens = next;
      budget.observe({.decoding = 2, .prompt_tokens = next}, decode_seconds + 0.001 * next);
    }
    return tokens;
  };
  CHECK(std::abs(steady(0.010) - 12) <= 1);
  CHECK(std::abs(steady(0.100) - 120) <= 2);
  CHECK(std::abs(steady(0.010) - 12) <= 1);
}

TEST_CASE("one step that was delayed by something else changes little") {
  StepBudget budget(8);
  budget.observe({.decoding = 2}, 0.010);
  for (int i = 0; i < 100; ++i) {
    const int tokens = budget.prompt_tokens(2);
    budget.observe({.decoding = 2, .prompt_tokens = tokens}, 0.010 + 0.001 * tokens);
  }
  const int before = budget.prompt_tokens(2);
  budget.observe({.decoding = 2, .prompt_tokens = before}, 1.0);
  CHECK(budget.prompt_tokens(2) >= before / 2);
  budget.observe({.decoding = 2}, 1.0);
  CHECK(budget.prompt_tokens(2) <= before * 3 / 2);
}

TEST_CASE("guesses are made as far as they pay, and measured again now and then") {
  // A machine on which a guess adds `cost` to a step.
  const auto settled = [](double cost, double right) {
    StepBudget budget(8);
    CHECK(budget.guesses(1, right, 6) == 0);  // decoding alone is measured first
    int guesses = 0;
    for (int step = 0; step < 200; ++step) {
      guesses = budget.guesses(1, right, 6);
      const double seconds = 0.02 * (1 + cost * guesses);
      budget.observe({.decoding = 1, .guesses = guesses, .by_layer = guesses > 0}, seconds);
      if (step == 199 && guesses == 0) return budget.guesses(1, right, 6);
    }
    return guesses;
  };
  CHECK(settled(0.02, 0.99) == 6);
  CHECK(settled(0.1, 0.9) > settled(0.3, 0.9));
  CHECK(settled(0.1, 0.9) > settled(0.1, 0.5));
  CHECK(settled(0.9, 0.5) <= 1);  // a try
  // The step after a prompt, in which the layer sees all of it, says nothing of decoding.
  StepBudget beginning(8);
  beginning.observe({.decoding = 1, .drafted = 400}, 3.0);
  CHECK(beginning.guesses(1, 0.9, 6) == 0);
  beginning.observe({.decoding = 1, .drafted = 1}, 0.02);
  const int before = beginning.guesses(1, 0.5, 6);
  beginning.observe({.decoding = 1, .guesses = 1, .by_layer = true, .drafted = 400}, 3.0);
  CHECK(beginning.guesses(1, 0.5, 6) == before);
  StepBudget costly(8);
  int steps_with = 0;
  for (int step = 0; step < 1000; ++step) {
    const int guesses = costly.guesses(1, 0.3, 6);
    steps_with += guesses > 0 ? 1 : 0;
    CHECK(guesses <= 2);
    costly.observe({.decoding = 1, .guesses = guesses, .by_layer = guesses > 0},
                   0.02 * (1 + 0.8 * guesses));
  }
  CHECK(steps_with > 5);
  CHECK(steps_with < 100);
}
