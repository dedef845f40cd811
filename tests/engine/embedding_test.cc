// Embeddings: the hidden state after the final norm, the same bits however it is computed.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>

#include "support/golden.h"
#include "support/rank_threads.h"
#include "weights/safetensors/checkpoint.h"

using namespace lockstep;

namespace {

const std::string kFolder = golden_folder("llama-f32");

GenerateRequest embedding_request(std::vector<int32_t> prompt, Pooling pooling, int chunk = 0) {
  return {.prompt = std::move(prompt), .max_tokens = 0, .pooling = pooling, .chunk = chunk};
}

std::vector<float> embed(const Setup& setup, const GenerateRequest& request) {
  const Answer answer = run_ranks(kFolder, setup, {request}).answers[0];
  REQUIRE(answer.error.empty());
  REQUIRE(answer.logits.size() == 1);
  CHECK(answer.tokens.empty());
  CHECK(answer.reason == FinishReason::kLength);
  return answer.logits[0];
}

}  // namespace

TEST_CASE("the LM head times the last token's embedding is that token's logits") {
  const std::vector<int32_t> prompt = read_golden(kFolder).prompt;
  const std::vector<float> hidden = embed({}, embedding_request(prompt, Pooling::kLast));
  const GenerateRequest logits_request{.prompt = prompt, .max_tokens = 0, .prompt_logits = true};
  const Answer answer = run_ranks(kFolder, {}, {logits_request}).answers[0];
  const std::vector<float>& logits = answer.logits.back();
  const auto checkpoint = Checkpoint::open(kFolder);
  REQUIRE(checkpoint.ok());
  const auto head = checkpoint.value()->tensor("lm_head.weight");
  REQUIRE(head.ok());
  REQUIRE(head.value()->shape == std::vector<int64_t>{static_cast<int64_t>(logits.size()),
                                                      static_cast<int64_t>(hidden.size())});
  const std::byte* weights = head.value()->bytes.data();
  for (const float logit : logits) {
    double sum = 0;
    for (const float value : hidden) {
      float weight = 0;
      std::memcpy(&weight, weights, sizeof(weight));
      weights += sizeof(weight);
      sum += double{weight} * double{value};
    }
    REQUIRE(std::fabs(sum - double{logit}) < 1e-4);
  }
}

TEST_CASE("embeddings have the same bits on any ranks, in any chunks and in any batch") {
  const std::vector<int32_t> prompt = read_golden(kFolder).prompt;
  const GenerateRequest text{.prompt = {5, 6, 7}, .max_tokens = 9};
  for (const Pooling pooling : {Pooling::kLast, Pooling::kMean}) {
    const std::vector<float> expected =
        embed({.isa = "scalar"}, embedding_request(prompt, pooling));
    for (const std::vector<double>& shares :
         std::vector<std::vector<double>>{{1}, {1, 1}, {2, 1, 1}, {1, 1, 1, 1}}) {
      CHECK(embed({.shares = shares}, embedding_request(prompt, pooling)) == expected);
      CHECK(embed({.shares = shares}, embedding_request(prompt, pooling, 7)) == expected);
      const auto beside =
          run_ranks(kFolder, {.shares = shares}, {text, embedding_request(prompt, pooling), text});
      CHECK(beside.answers[1].logits.at(0) == expected);
      CHECK(beside.answers[0].tokens.size() == 9);
    }
    CHECK(embed({.shares = {3, 1}, .device = "delayed"}, embedding_request(prompt, pooling)) ==
          expected);
    for (const std::vector<double>& shares :
         std::vector<std::vector<double>>{{1, 1}, {1, 2, 1, 1}}) {
      const Setup stages{.shares = shares, .stages = 2};
      for (const int chunk : {0, 1, 7}) {
        CHECK(embed(stages, embedding_request(prompt, pooling, chunk)) == expected);
      }
      const auto beside =
          run_ranks(kFolder, stages, {text, embedding_request(prompt, pooling, 5), text});
      CHECK(beside.answers[1].logits.at(0) == expected);
      CHECK(beside.answers[2].tokens.size() == 9);
    }
  }
}

TEST_CASE("the mean embedding is the mean of what each token's own would be") {
  const std::vector<int32_t> prompt{3, 1, 4, 1, 5};
  const std::vector<float> mean = embed({}, embedding_request(prompt, Pooling::kMean, 2));
  std::vector<double> sum(mean.size());
  for (size_t size = 1; size <= prompt.size(); ++size) {
    const std::vector<int32_t> beginning(prompt.begin(),
                                         prompt.begin() + static_cast<std::ptrdiff_t>(size));
    const std::vector<float> last = embed({}, embedding_request(beginning, Pooling::kLast));
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += double{last[i]};
  }
  for (size_t i = 0; i < sum.size(); ++i) CHECK(mean[i] == static_cast<float>(sum[i] / 5));
}

TEST_CASE("an embedding request that also generates tokens is refused") {
  GenerateRequest request = embedding_request({1, 2}, Pooling::kLast);
  request.max_tokens = 3;
  CHECK(run_ranks(kFolder, {}, {request}).answers[0].error.find("not followed by tokens") !=
        std::string::npos);
}
