#include "sampling/sampler.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "kernels/isa.h"
#include "transport/form/local_links.h"

using namespace lockstep;

namespace {

constexpr int32_t kVocabulary = 101;

// A text in which each token differs from the previous one by a multiple of `step`; tokens from
// `known` on are unknown. `allowed` counts masks.
class StepRules final : public TokenRules {
 public:
  StepRules(int32_t step, int32_t known) : step_(step), known_(known) {}

  bool allows(int32_t token) override {
    return token < known_ && (texts_.empty() || (token - texts_.back()) % step_ == 0);
  }
  const uint64_t* allowed() override {
    words_.assign((static_cast<size_t>(known_) + 63) / 64, 0);
    for (int32_t token = 0; token < known_; ++token) {
      if (allows(token)) words_[static_cast<size_t>(token) / 64] |= uint64_t{1} << (token % 64);
    }
    return words_.data();
  }
  int32_t token_count() const override { return known_; }
  bool may_end() override { return texts_.size() > 3; }
  bool accept(int32_t token) override {
    if (!allows(token)) return false;
    texts_.push_back(token);
    return true;
  }
  bool take_back(size_t count) override {
    if (count > texts_.size()) return false;
    texts_.resize(texts_.size() - count);
    return true;
  }

 private:
  int32_t step_, known_;
  std::vector<int32_t> texts_;
  std::vector<uint64_t> words_;
};

struct Row {
  std::vector<float> logits;  // the whole row
  ChoiceRequest request;
};

std::vector<float> random_row(unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 2);
  std::vector<float> row(kVocabulary);
  for (float& logit : row) logit = normal(random);
  return row;
}

// A copy of a choice's contents.
struct Chosen {
  int32_t token;
  bool is_number, has_ended, is_lost;
  std::vector<float> logits;
  std::vector<int32_t> logprob_tokens;
  std::vector<float> logprobs;
  bool operator==(const Chosen&) const = default;
};

using Steps = std::vector<std::vector<Row>>;
using Prepare = std::function<void(ChoiceSlots&)>;

// The choices that rank 0 gets in each step. `begins` cuts the vocabulary.
std::vector<std::vector<Chosen>> choose_on(const std::vector<int>& begins, const Prepare& prepare,
                                           const Steps& steps) {
  const int ranks = static_cast<int>(begins.size()) - 1;
  auto links = open_local_links(LinkKind::kShm, ranks);
  REQUIRE(links.ok());
  std::vector<std::vector<Chosen>> all;
  std::vector<std::string> errors(static_cast<size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      const auto r = static_cast<size_t>(rank);
      Group group({.rank = rank,
                   .links = std::move(links.value()[r]),
                   .timeout = std::chrono::seconds(20),
                   .kernels = available_kernels().back()});
      Sampler sampler(group, begins);
      if (prepare) prepare(sampler.slots());
      for (const auto& rows : steps) {
        std::vector<float> logits;
        std::vector<ChoiceRequest> requests;
        for (const Row& row : rows) {
          logits.insert(logits.end(), row.logits.begin() + begins[r],
                        row.logits.begin() + begins[r + 1]);
          requests.push_back(row.request);
        }
        const auto choices = sampler.choose(logits, requests);
        if (!choices.ok()) {
          errors[r] = choices.error().message;
          return;
        }
        if (rank != 0) continue;
        auto& kept = all.emplace_back();
        for (const SampledToken& choice : choices.value()) {
          Chosen& one = kept.emplace_back(
              Chosen{choice.token, choice.is_number, choice.has_ended, choice.is_lost, {}, {}, {}});
          one.logits.assign(choice.logits.begin(), choice.logits.end());
          for (const TokenLogprob& of : choice.logprobs) {
            one.logprob_tokens.push_back(of.token);
            one.logprobs.push_back(of.logprob);
          }
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& error : errors) REQUIRE_MESSAGE(error.empty(), error);
  return all;
}

const std::vector<std::vector<int>> kCuts{{0, 101},         {0, 50, 101},     {0, 1, 101},
                                          {0, 30, 30, 101}, {0, 40, 64, 101}, {0, 101, 101}};

std::vector<SamplingOptions> all_options() {
  return {{},
          {.temperature = 1},
          {.temperature = 1, .top_k = 4},
          {.temperature = 0.8f, .top_p = 0.7f},
          {.temperature = 1, .min_p = 0.1f},
          {.temperature = 1, .typical_p = 0.5f},
          {.temperature = 1.2f, .top_k = 90, .top_p = 0.9f, .min_p = 0.01f},
          {.temperature = 1, .top_k = 2000},
          {.repetition_penalty = 1.5f, .presence_penalty = 0.5f},
          {.temperature = 1, .frequency_penalty = 1, .dry_multiplier = 2}};
}

// Rows of a real continuation: each follows the token that a single rank would choose.
Steps follow_text(const Prepare& prepare, const ChoiceRequest& like) {
  Steps steps;
  for (int i = 0; i < 12; ++i) {
    ChoiceRequest request = like;
    request.wants_token = true;
    request.position = like.position + i;
    if (i > 0) {
      const auto so_far = choose_on({0, kVocabulary}, prepare, steps);
      request.previous_token = so_far.back().front().token;
      if (request.previous_token < 0) return steps;
    }
    steps.push_back({{random_row(static_cast<unsigned>(100 + i)), request}});
  }
  return steps;
}

}  // namespace

TEST_CASE("any cut of the vocabulary gives the same choices, rows and logprobs") {
  for (const SamplingOptions& options : all_options()) {
    if (history_needed(options) > 0 || options.frequency_penalty != 0) continue;
    std::vector<Row> rows;
    for (unsigned i = 0; i < 6; ++i) {
      const auto number = static_cast<int32_t>(i);
      ChoiceRequest request{.position = number, .slot = number};
      request.wants_token = i != 2;
      request.wants_logits = i == 2 || i == 3;
      rows.push_back({random_row(i), request});
    }
    const Prepare prepare = [&](ChoiceSlots& slots) {
      for (int32_t i = 0; i < 6; ++i) {
        slots.set(i, {.sampling = options, .top_logprobs = i == 4 ? 3 : i == 5 ? 0 : -1}, nullptr);
      }
    };
    const auto whole = choose_on(kCuts[0], prepare, {rows});
    CHECK(whole[0][4].logprobs.size() == 4);
    CHECK(whole[0][5].logprobs.size() == 1);
    CHECK(whole[0][2].token == -1);
    CHECK(whole[0][2].logits.size() == kVocabulary);
    for (const auto& cut : kCuts) CHECK(choose_on(cut, prepare, {rows}) == whole);
  }
}

TEST_CASE("rules, biases and penalties give the same, valid text on any cut") {
  const auto prepare_for = [](SamplingOptions options, int32_t top_logprobs) -> Prepare {
    options.seed = 5;
    return [options, top_logprobs](ChoiceSlots& slots) {
      ChoiceSetup setup{.sampling = options,
                        .top_logprobs = top_logprobs,
                        .answer_begin = 3,
                        .begin = 0,
                        .tokens = {7, 8, 7, 15}};
      setup.logit_bias = {{50, -100}, {64, 4}};
      setup.stop_ids = {3, 9};
      setup.min_tokens = 6;
      slots.set(2, setup, std::make_unique<StepRules>(3, 97));
    };
  };
  for (const SamplingOptions& options : all_options()) {
    const Prepare prepare = prepare_for(options, -1);
    const Steps steps = follow_text(prepare, {.position = 4, .previous_token = 15, .slot = 2});
    REQUIRE(steps.size() == 12);
    const auto whole = choose_on(kCuts[0], prepare, steps);
    for (size_t i = 0; i < whole.size(); ++i) {
      const int32_t token = whole[i][0].token;
      CHECK(token % 3 == 0);
      CHECK(token < 97);
      if (i < 5) CHECK((token != 3 && token != 9));
    }
    for (const auto& cut : kCuts) CHECK(choose_on(cut, prepare, steps) == whole);
    // The whole row in one place, as for logprobs.
    const auto told = choose_on(kCuts[1], prepare_for(options, 2), steps);
    for (size_t i = 0; i < whole.size(); ++i) CHECK(told[i][0].token == whole[i][0].token);
  }
}

TEST_CASE("rows at earlier positions undo tokens, within one step too") {
  const Prepare prepare = [](ChoiceSlots& slots) {
    slots.set(0, {.answer_begin = 0, .begin = 0, .tokens = {}},
              std::make_unique<StepRules>(2, kVocabulary));
  };
  const auto row = [](int32_t position, int32_t previous_token) {
    return Row{
        random_row(static_cast<unsigned>(position)),
        {.position = position, .previous_token = previous_token, .slot = 0, .wants_token = true}};
  };
  // Draft 4, 6, 8 of which 6 is refused, then 10 in its place.
  const Steps steps{{row(0, 0)}, {row(1, 4), row(2, 6), row(3, 8)}, {row(2, 10)}, {row(3, 12)}};
  const auto whole = choose_on(kCuts[0], prepare, steps);
  for (const auto& choices : whole) {
    for (const Chosen& one : choices) CHECK((one.token % 2 == 0 || &choices == &whole[0]));
  }
  for (const auto& cut : kCuts) CHECK(choose_on(cut, prepare, steps) == whole);
}

TEST_CASE("a text that breaks its rules is lost, alone; one that cannot continue has ended") {
  for (const SamplingOptions& options : all_options()) {
    const Prepare prepare = [&](ChoiceSlots& slots) {
      slots.set(0, {.sampling = options, .answer_begin = 0, .tokens = {4, 5}},
                std::make_unique<StepRules>(2, 100));
      slots.set(1, {.sampling = options, .answer_begin = 0, .tokens = {4, 4, 4, 4}},
                std::make_unique<StepRules>(2, 0));
      ChoiceSetup setup{.sampling = options, .answer_begin = 0, .tokens = {0, 0, 0, 0}};
      for (int32_t token = 0; token < kVocabulary; token += 50) setup.stop_ids.push_back(token);
      setup.min_tokens = 9;
      slots.set(2, setup, std::make_unique<StepRules>(50, kVocabulary));
      slots.set(3, {.sampling = options, .answer_begin = 1, .begin = 1}, nullptr);
    };
    const auto row = [&](int32_t position, int32_t slot, int32_t previous_token) {
      return Row{random_row(3),
                 {.position = position,
                  .previous_token = previous_token,
                  .slot = slot,
                  .wants_token = true}};
    };
    const Steps steps{{row(2, 0, 5), row(4, 1, 4), row(4, 2, 0), row(1, 3, 7)}};
    for (const auto& cut : kCuts) {
      const auto choices = choose_on(cut, prepare, steps).front();
      CHECK(choices[0].is_lost);
      CHECK(choices[0].token == -1);
      CHECK(choices[1].is_lost);
      CHECK(choices[2].has_ended);
      CHECK(!choices[2].is_lost);
      CHECK(choices[2].token == -1);
      CHECK(choices[3].token >= 0);
    }
  }
}

TEST_CASE("a row that does not follow its sequence is an error") {
  std::vector<std::unique_ptr<Link>> links(1);
  Group group({.links = std::move(links), .kernels = available_kernels().back()});
  Sampler sampler(group, {0, kVocabulary});
  const SamplingOptions options{.presence_penalty = 1};
  sampler.slots().set(0, {.sampling = options, .answer_begin = 2, .begin = 2}, nullptr);
  const auto row = random_row(1);
  const auto choose = [&](int32_t position, int32_t slot) {
    const ChoiceRequest request{
        .position = position, .previous_token = 1, .slot = slot, .wants_token = true};
    return sampler.choose(row, std::span(&request, 1)).ok();
  };
  CHECK(choose(2, 0));
  CHECK(!choose(4, 0));
  CHECK(!choose(2, 1));
  CHECK(!choose(2, -1));
  CHECK(!choose(1, 0));
  sampler.slots().release(0);
  CHECK(!choose(2, 0));
}

TEST_CASE("logprobs are the softmax of the logits, before anything is added for the choice") {
  const auto row = random_row(2);
  const Prepare prepare = [](ChoiceSlots& slots) {
    slots.set(0, {.top_logprobs = 20, .logit_bias = {{30, 100}}}, nullptr);
  };
  const ChoiceRequest request{.position = 0, .previous_token = 0, .slot = 0, .wants_token = true};
  const Chosen chosen = choose_on(kCuts[2], prepare, {{{row, request}}}).front().front();
  CHECK(chosen.token == 30);
  double total = 0;
  for (const float logit : row) total += std::exp(double{logit});
  REQUIRE(chosen.logprobs.size() == 21);
  CHECK(chosen.logprob_tokens[0] == 30);
  for (size_t i = 0; i < 21; ++i) {
    const double expected =
        double{row[static_cast<size_t>(chosen.logprob_tokens[i])]} - std::log(total);
    CHECK(chosen.logprobs[i] == doctest::Approx(expected).epsilon(1e-6));
    if (i > 1) CHECK(chosen.logprobs[i] <= chosen.logprobs[i - 1]);
  }
}
