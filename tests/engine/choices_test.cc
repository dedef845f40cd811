// Choices that depend on more than a row of logits: constraints, penalties, biases, minimum
// lengths, log-probabilities. The text is the same on any ranks and stages, alone and in a batch,
// and when a stream resumes elsewhere.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "engine/choices/choice_orders.h"
#include "grammar/automaton/matcher.h"
#include "grammar/constraint.h"
#include "support/rank_threads.h"
#include "support/story_requests.h"
#include "tokenizer/tokenizer.h"

using namespace lockstep;

namespace {

constexpr int32_t kEnd = 2;

const char* const kList = R"({"json_schema": {"type": "array", "minItems": 1, "maxItems": 3,
  "items": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 12},
  "age": {"type": "integer", "minimum": 1, "maximum": 99}},
  "required": ["name", "age"], "additionalProperties": false}}})";
const char* const kWords = R"({"regex": "[A-Z][a-z]{2,6}( [a-z]{1,7}){2,4}[.!]"})";
const char* const kRules =
    R"({"ebnf": "root ::= \"The \" animal (\" and the \" animal){0,2} \".\"\n)"
    R"(animal ::= \"cat\" | \"dog\" | \"bird\""})";

std::shared_ptr<const Tokenizer> tokenizer() {
  static const auto loaded = Tokenizer::load(kStories);
  REQUIRE(loaded.ok());
  return loaded.value();
}

std::string decoded(std::span<const int32_t> tokens) {
  std::string text;
  for (const int32_t token : tokens) text += tokenizer()->token_bytes(token);
  return text;
}

// Whether a text obeys a constraint; it may be truncated.
bool obeys(const std::string& constraint, const Answer& answer) {
  const auto compiled = compile_constraint(constraint, *tokenizer());
  REQUIRE(compiled.ok());
  Matcher matcher(compiled.value());
  if (!matcher.accept_bytes(decoded(answer.tokens))) return false;
  return answer.reason == FinishReason::kLength || matcher.may_end();
}

GenerateRequest request_for(const char* constraint, SamplingOptions sampling) {
  GenerateRequest request{.prompt = {1, 403, 407, 261, 378}, .max_tokens = 90};
  request.stop_ids = {kEnd};
  request.sampling = sampling;
  request.constraint = constraint;
  return request;
}

std::vector<SamplingOptions> samplings() {
  return {{},
          {.temperature = 1, .seed = 7},
          {.temperature = 1.5f, .top_k = 30, .seed = 8},
          {.temperature = 1.2f, .top_p = 0.9f, .seed = 9},
          {.temperature = 1, .seed = 10, .min_p = 0.02f, .typical_p = 0.9f},
          {.temperature = 0.9f,
           .seed = 11,
           .repetition_penalty = 1.3f,
           .penalty_tokens = 30,
           .presence_penalty = 0.4f,
           .frequency_penalty = 0.2f,
           .dry_multiplier = 0.8f}};
}

std::vector<Setup> setups() {
  return {{.shares = {1, 1}},
          {.shares = {1, 1, 1}},
          {.shares = {7, 1, 3}, .link = LinkKind::kTcp},
          {.shares = {1, 1}, .stages = 2},
          {.shares = {1, 3, 2, 1}, .stages = 2}};
}

Answer run_alone(const GenerateRequest& request, const Setup& setup = {}) {
  return run_ranks(kStories, setup, {request}).answers[0];
}

}  // namespace

TEST_CASE("constrained text obeys its constraint, and is the same on any ranks and stages") {
  std::vector<GenerateRequest> requests;
  for (const char* constraint : {kList, kWords, kRules}) {
    for (const SamplingOptions& sampling : samplings()) {
      requests.push_back(request_for(constraint, sampling));
    }
  }
  const auto alone = run_ranks(kStories, {}, requests).answers;
  std::set<std::string> texts;
  size_t ended = 0;
  for (size_t i = 0; i < requests.size(); ++i) {
    CAPTURE(i);
    CAPTURE(decoded(alone[i].tokens));
    CHECK(alone[i].error.empty());
    CHECK(alone[i].cached_tokens >= 0);  // the start of each was reported
    CHECK(obeys(requests[i].constraint, alone[i]));
    ended += alone[i].reason == FinishReason::kStop ? 1 : 0;
    texts.insert(decoded(alone[i].tokens));
  }
  CHECK(ended > requests.size() / 2);
  CHECK(texts.size() > requests.size() / 2);
  for (const Setup& setup : setups()) {
    const auto answers = run_ranks(kStories, setup, requests).answers;
    for (size_t i = 0; i < requests.size(); ++i) {
      CAPTURE(i);
      CHECK(answers[i].error.empty());
      CHECK(same_bits(answers[i], alone[i]));
      CHECK(answers[i].reason == alone[i].reason);
    }
  }
  for (size_t i = 0; i < requests.size(); i += 5)
    CHECK(same_bits(run_alone(requests[i]), alone[i]));
}

TEST_CASE("a stream that lost its group resumes under the same rules") {
  for (const SamplingOptions& sampling : samplings()) {
    GenerateRequest request = request_for(kList, sampling);
    request.min_tokens = 12;
    request.logit_bias = {{410, 2.5f}};
    const Answer whole = run_alone(request);
    REQUIRE(whole.tokens.size() > 12);
    for (const size_t told : {size_t{1}, size_t{9}, whole.tokens.size()}) {
      GenerateRequest rest = request;
      rest.prompt.insert(rest.prompt.end(), whole.tokens.begin(),
                         whole.tokens.begin() + static_cast<std::ptrdiff_t>(told));
      rest.resumed_tokens = static_cast<int>(told);
      rest.max_tokens -= rest.resumed_tokens;
      const Answer answer = run_alone(rest, {.shares = {2, 1}});
      CHECK(answer.error.empty());
      CHECK(std::ranges::equal(answer.tokens, std::span(whole.tokens).subspan(told)));
      CHECK(answer.reason == whole.reason);
    }
  }
}

TEST_CASE("a constraint that cannot be met ends only its own request, with a sentence") {
  const auto with = [](std::string constraint) {
    GenerateRequest request = request_for(constraint.c_str(), {});
    request.max_tokens = 5;
    return request;
  };
  GenerateRequest many_biases = with("");
  many_biases.logit_bias.resize(5000);
  GenerateRequest foreign_bias = with("");
  foreign_bias.logit_bias = {{512, 1}};
  GenerateRequest resumed_too_much = with(kWords);
  resumed_too_much.resumed_tokens = 6;
  GenerateRequest resumed_otherwise = with(kRules);
  resumed_otherwise.resumed_tokens = 2;
  const std::vector<GenerateRequest> requests{
      with(kWords),
      with("no JSON"),
      with(R"({"regex": "(a"})"),
      with(R"({"json_schema": {"not": {"properties": {"a": {}}}}, "strict": true})"),
      with(std::string(size_t{3} << 20, ' ')),
      many_biases,
      resumed_too_much,
      resumed_otherwise,
      foreign_bias,
      with(R"({"regex": "(a"})"),
      with("")};
  for (const Setup& setup :
       {Setup{}, Setup{.shares = {1, 1}}, Setup{.shares = {1, 1}, .stages = 2}}) {
    const auto answers = run_ranks(kStories, setup, requests).answers;
    CHECK(answers[0].tokens.size() == 5);
    CHECK(answers[10].tokens.size() == 5);
    for (size_t i = 1; i < 10; ++i) {
      CAPTURE(i);
      CHECK(!answers[i].error.empty());
      CHECK(answers[i].tokens.empty());
    }
    CHECK(answers[3].error.find("not") != std::string::npos);
    CHECK(answers[4].error.find("2097152") != std::string::npos);
    CHECK(answers[7].error.find("grammar") != std::string::npos);
    CHECK(answers[8].error.find("512") != std::string::npos);
    CHECK(answers[2].error == answers[9].error);
  }
}

TEST_CASE("more grammars than the ranks cache take turns") {
  std::vector<GenerateRequest> requests;
  for (int i = 0; i < 2 * kGrammarsMax + 3; ++i) {
    requests.push_back(request_for("", {.temperature = 1, .seed = static_cast<uint64_t>(i)}));
    requests.back().constraint = R"({"regex": "x)" + std::to_string(i) + R"([ab]{3}"})";
  }
  const auto answers = run_ranks(kStories, {.shares = {1, 1}}, requests).answers;
  for (size_t i = 0; i < requests.size(); ++i) {
    CHECK(answers[i].error.empty());
    CHECK(obeys(requests[i].constraint, answers[i]));
    CHECK(answers[i].reason == FinishReason::kStop);
  }
}

TEST_CASE("without end tokens a text ends when no token is allowed") {
  GenerateRequest request = request_for(R"({"regex": "ab{2}"})", {});
  request.stop_ids = {};
  const Answer answer = run_alone(request, {.shares = {1, 1}, .stages = 2});
  CHECK(answer.reason == FinishReason::kStop);
  CHECK(obeys(request.constraint, answer));
  request.stop_ids = {100'000};  // unknown to the tokenizer
  CHECK(run_alone(request, {.shares = {1, 1}}).tokens == answer.tokens);
  GenerateRequest open = request_for(R"({"regex": "[ab]*"})", {});
  open.stop_ids = {};
  CHECK(run_alone(open).reason == FinishReason::kLength);
}

TEST_CASE("a biased token is always or never chosen") {
  GenerateRequest request = request_for("", {.temperature = 1, .seed = 1});
  request.max_tokens = 20;
  request.logit_bias = {{300, 100.0f}};
  for (const int32_t token : run_alone(request, {.shares = {1, 2}}).tokens) CHECK(token == 300);
  GenerateRequest greedy = request_for("", {});
  greedy.max_tokens = 20;
  const Answer plain = run_alone(greedy);
  greedy.logit_bias = {{plain.tokens[3], -100.0f}};
  const Answer without = run_alone(greedy, {.shares = {1, 2}});
  CHECK(std::ranges::count(without.tokens, plain.tokens[3]) == 0);
  CHECK(std::ranges::equal(std::span(without.tokens).first(3), std::span(plain.tokens).first(3)));
}

TEST_CASE("no end token is chosen before the minimum length, and the text continues") {
  GenerateRequest request = request_for("", {});
  request.stop_ids.clear();
  request.max_tokens = 30;
  const Answer open = run_alone(request);
  request.stop_ids = {open.tokens[4]};
  CHECK(run_alone(request).tokens.size() <= 4);
  request.min_tokens = 10;
  for (const Setup& setup : {Setup{}, Setup{.shares = {1, 1, 1}}}) {
    const Answer answer = run_alone(request, setup);
    CHECK(answer.tokens.size() >= 10);
    const auto early = std::span(answer.tokens).first(10);
    CHECK(std::ranges::count(early, open.tokens[4]) == 0);
  }
}

TEST_CASE("penalties change a text, and reduce repetitions") {
  GenerateRequest request = request_for("", {});
  request.stop_ids.clear();
  request.max_tokens = 120;
  const auto distinct = [](const Answer& answer) {
    return std::set<int32_t>(answer.tokens.begin(), answer.tokens.end()).size();
  };
  const Answer plain = run_alone(request);
  const std::vector<SamplingOptions> penalties{
      {.repetition_penalty = 1.3f}, {.presence_penalty = 1.5f}, {.frequency_penalty = 0.8f}};
  for (const SamplingOptions& sampling : penalties) {
    request.sampling = sampling;
    const Answer answer = run_alone(request);
    CHECK(distinct(answer) > distinct(plain));
    CHECK(same_bits(run_alone(request, {.shares = {1, 1}}), answer));
  }
}

TEST_CASE("logprobs come with each token, the same on any cut, and do not change the text") {
  for (const SamplingOptions& sampling : samplings()) {
    GenerateRequest request = request_for(kWords, sampling);
    request.max_tokens = 20;
    const Answer plain = run_alone(request);
    CHECK(plain.logprobs.empty());
    request.top_logprobs = 3;
    const Answer told = run_alone(request);
    CHECK(told.tokens == plain.tokens);
    REQUIRE(told.logprobs.size() == told.tokens.size());
    for (size_t i = 0; i < told.tokens.size(); ++i) {
      const auto& one = told.logprobs[i];
      REQUIRE(one.size() == 4);
      CHECK(one[0].token == told.tokens[i]);
      CHECK(one[0].logprob <= one[1].logprob);
      CHECK(one[1].logprob >= one[2].logprob);
      CHECK(one[1].logprob <= 0);
    }
    for (const Setup& setup : setups()) {
      const Answer answer = run_alone(request, setup);
      CHECK(answer.tokens == told.tokens);
      REQUIRE(answer.logprobs.size() == told.logprobs.size());
      for (size_t i = 0; i < told.logprobs.size(); ++i) {
        CHECK(std::memcmp(answer.logprobs[i].data(), told.logprobs[i].data(),
                          4 * sizeof(TokenLogprob)) == 0);
      }
    }
  }
}
