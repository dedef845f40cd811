#include "engine/run/stage_messages.h"

#include <doctest/doctest.h>

#include <cstring>
#include <random>

using namespace lockstep;

namespace {

constexpr StageLimits kStageLimits{
    .batch = {.tokens_max = 8, .page_list_entries_max = 4, .pages = 10, .vocab_size = 5},
    .hidden = 3,
    .passed = 3,
    .vocab_size = 5};

Step step_of_two() {
  Step step;
  step.batch = {.tokens = {1, 4},
                .positions = {0, 1},
                .list_offsets = {0, 0},
                .page_lists = {7},
                .outputs = {1},
                .hidden_outputs = {0}};
  step.requests = {
      {.position = 2, .previous_token = step.batch.tokens.back(), .wants_token = true}};
  return step;
}

const std::vector<float> kHidden{1, 2, 3, 4, 5, 6};

std::vector<std::byte> work() {
  std::vector<std::byte> message;
  encode_work(step_of_two(), {.hidden = kHidden}, message);
  return message;
}

std::vector<std::byte> work_with_pages() {
  Step step = step_of_two();
  step.pages.loads = {{.page = 8}, {.page = 9}};
  std::vector<std::byte> message;
  encode_work(step, {.hidden = kHidden, .pages = {.saved = 0, .loaded = 1}}, message);
  return message;
}

std::vector<std::byte> result_message(std::optional<PageOutcome> pages = std::nullopt,
                                      const std::vector<int32_t>& guesses = {}) {
  const std::vector<float> row{1, 2, 3, 4, 5}, hidden{9, 8, 7};
  const std::vector<TokenLogprob> logprobs{{0, -1.5f}, {4, -0.25f}};
  const std::vector<SampledToken> choices{{.token = 3},
                                          {.token = -1, .is_number = false, .logits = row},
                                          {.token = 0, .logprobs = logprobs},
                                          {.has_ended = true},
                                          {.is_lost = true}};
  std::vector<std::byte> message;
  encode_result({choices, hidden, pages, {.next_guesses = guesses}}, message);
  return message;
}

}  // namespace

TEST_CASE("work carries the step and the hidden state of its tokens") {
  const std::vector<std::byte> message = work();
  CHECK(message.size() <= work_bytes_max(kStageLimits));
  Step step;
  const auto decoded = decode_work(message, kStageLimits, step);
  REQUIRE(decoded.ok());
  const auto hidden = decoded.value().hidden;
  CHECK(std::vector<float>(hidden.begin(), hidden.end()) == kHidden);
  CHECK(step.batch.tokens == std::vector<int32_t>{1, 4});
  CHECK(step.batch.hidden_outputs == std::vector<int32_t>{0});
  CHECK(step.requests[0].position == 2);
}

TEST_CASE("work and results carry the outcome of page orders, and no bytes without them") {
  const std::vector<std::byte> message = work_with_pages();
  CHECK(message.size() <= work_bytes_max(kStageLimits));
  Step step;
  const auto decoded = decode_work(message, kStageLimits, step);
  REQUIRE(decoded.ok());
  CHECK(decoded.value().pages.saved == 0);
  CHECK(decoded.value().pages.loaded == 1);
  const auto hidden = decoded.value().hidden;
  CHECK(std::vector<float>(hidden.begin(), hidden.end()) == kHidden);
  std::vector<SampledToken> choices;
  CHECK(!decode_result(result_message(), kStageLimits, choices).value().pages);
  const auto with_pages = result_message(PageOutcome{.saved = -1, .loaded = 16});
  CHECK(with_pages.size() == result_message().size() + sizeof(PageOutcome));
  const auto result = decode_result(with_pages, kStageLimits, choices);
  REQUIRE(result.ok());
  REQUIRE(result.value().pages);
  CHECK(result.value().pages->lacks_store());
  CHECK(result.value().pages->loaded == 16);
  CHECK(result.value().hidden.size() == 3);
  CHECK(result.value().choices.size() == 5);
}

TEST_CASE("more page orders than the limit are refused") {
  for (const PageOutcome pages :
       {PageOutcome{.saved = -2}, PageOutcome{.loaded = PageOutcome::kLoadsMax + 1},
        PageOutcome{.saved = PageOutcome::kSavesMax + 1}}) {
    std::vector<SampledToken> choices;
    CHECK(!decode_result(result_message(pages), kStageLimits, choices).ok());
  }
}

TEST_CASE("a stop is work without tokens") {
  Step stop;
  stop.is_stop = true;
  std::vector<std::byte> message = work();
  encode_work(stop, {}, message);
  Step step;
  const auto decoded = decode_work(message, kStageLimits, step);
  REQUIRE(decoded.ok());
  CHECK(decoded.value().hidden.empty());
  CHECK(step.is_stop);
}

TEST_CASE("a result carries tokens, the rows that were asked for, and hidden states") {
  const std::vector<std::byte> message = result_message();
  CHECK(message.size() <= result_bytes_max(kStageLimits));
  std::vector<SampledToken> choices;
  const auto result = decode_result(message, kStageLimits, choices);
  REQUIRE(result.ok());
  REQUIRE(result.value().choices.size() == 5);
  CHECK(result.value().choices[0].token == 3);
  CHECK(result.value().choices[0].logits.empty());
  CHECK(result.value().choices[1].token == -1);
  CHECK(!result.value().choices[1].is_number);
  CHECK(result.value().choices[2].is_number);
  REQUIRE(result.value().choices[1].logits.size() == 5);
  CHECK(result.value().choices[1].logits[4] == 5);
  CHECK(result.value().choices[2].token == 0);
  CHECK(result.value().choices[1].logprobs.empty());
  REQUIRE(result.value().choices[2].logprobs.size() == 2);
  CHECK(result.value().choices[2].logprobs[1].token == 4);
  CHECK(result.value().choices[2].logprobs[1].logprob == -0.25f);
  CHECK(!result.value().choices[2].has_ended);
  CHECK(result.value().choices[3].has_ended);
  CHECK(!result.value().choices[3].is_lost);
  CHECK(result.value().choices[4].is_lost);
  REQUIRE(result.value().hidden.size() == 3);
  CHECK(result.value().hidden[0] == 9);
}

TEST_CASE("a result carries guesses for the next steps, and others are refused") {
  std::vector<SampledToken> choices;
  for (const std::vector<int32_t>& guesses : {std::vector<int32_t>{1, 4, -1}, {}}) {
    const std::vector<std::byte> message = result_message(PageOutcome{}, guesses);
    CHECK(message.size() <= result_bytes_max(kStageLimits));
    const auto result = decode_result(message, kStageLimits, choices);
    REQUIRE(result.ok());
    const auto next = result.value().drafted.next_guesses;
    CHECK(std::vector<int32_t>(next.begin(), next.end()) == guesses);
    CHECK(result.value().pages);
    CHECK(result.value().hidden[2] == 7);
  }
  for (const std::vector<int32_t>& guesses :
       {std::vector<int32_t>{5}, std::vector<int32_t>{-2}, std::vector<int32_t>(9, 1)}) {
    CHECK(!decode_result(result_message({}, guesses), kStageLimits, choices).ok());
  }
}

TEST_CASE("truncated, too long or changed messages are errors and never read out of bounds") {
  std::mt19937 random(3);
  const auto with_pages = result_message(PageOutcome{.saved = 1, .loaded = 2}, {2, 3});
  for (const auto& whole : {work(), work_with_pages(), result_message(), with_pages}) {
    const bool is_work = whole == work() || whole == work_with_pages();
    const auto decodes = [&](const std::vector<std::byte>& message) {
      Step step;
      std::vector<SampledToken> choices;
      return is_work ? decode_work(message, kStageLimits, step).ok()
                     : decode_result(message, kStageLimits, choices).ok();
    };
    CHECK(decodes(whole));
    for (size_t size = 0; size < whole.size(); ++size) {
      CHECK(!decodes({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)}));
    }
    std::vector<std::byte> longer = whole;
    longer.resize(longer.size() + 4);
    CHECK(!decodes(longer));
    for (int round = 0; round < 2000; ++round) {
      std::vector<std::byte> changed = whole;
      for (int i = 0; i < 2; ++i) changed[random() % changed.size()] = std::byte(random() % 256);
      decodes(changed);
    }
  }
}

TEST_CASE("tokens outside the vocabulary are refused") {
  for (const int32_t token : {-2, 5, 1'000'000}) {
    const std::vector<SampledToken> choices{{.token = token}};
    std::vector<std::byte> message;
    encode_result({choices, {}}, message);
    std::vector<SampledToken> decoded;
    CHECK(!decode_result(message, kStageLimits, decoded).ok());
  }
  for (const int32_t token : {-1, 5}) {
    const std::vector<TokenLogprob> logprobs{{token, 0}};
    const std::vector<SampledToken> choices{{.token = 1, .logprobs = logprobs}};
    std::vector<std::byte> message;
    encode_result({choices, {}}, message);
    std::vector<SampledToken> decoded;
    CHECK(!decode_result(message, kStageLimits, decoded).ok());
  }
}
