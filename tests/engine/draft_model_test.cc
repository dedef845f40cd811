// A draft model: its guesses cost no bit of the answer, and it is refused where it cannot guess.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "support/drafted.h"
#include "support/golden.h"
#include "support/random_model.h"
#include "support/temporary_folder.h"

using namespace lockstep;

namespace {

const std::string kTeller = std::string(LOCKSTEP_SOURCE_DIR) + "/models/stories260K";

struct Ranks {
  std::vector<double> shares;
  int stages = 1;
};

std::string refusal(const std::string& model, const Setup& setup) {
  const auto errors =
      try_ranks_with(links_of(setup), model, setup, [](Engine&, int) { return Status(Ok{}); });
  return errors.front();
}

}  // namespace

TEST_CASE("a model that guesses for itself is always right, and saves steps") {
  const GenerateRequest request{.prompt = {1, 403, 407, 261, 378}, .max_tokens = 100};
  const Answer serial = run_ranks(kTeller, {}, {request}).answers[0];
  REQUIRE(serial.tokens.size() == 100);
  for (const Ranks& cut : {Ranks{{1}}, Ranks{{1, 1}}, Ranks{{3, 1, 2}}, Ranks{{1, 1, 1, 1}},
                           Ranks{{1, 1}, 2}, Ranks{{2, 1, 1}, 3}, Ranks{{2, 1, 1, 1}, 2}}) {
    CAPTURE(cut.shares.size());
    CAPTURE(cut.stages);
    Setup setup{
        .shares = cut.shares, .stages = cut.stages, .draft_model = kTeller, .layer_guesses = 4};
    const Drafted drafted = run_and_count(kTeller, setup, {request});
    CHECK(same_bits(drafted.answers[0], serial));
    // Five tokens a step after the first one.
    CHECK(drafted.counts.steps == 20);
    CHECK(drafted.counts.guesses == drafted.counts.right);
    CHECK(drafted.counts.right == 79);
    setup.layer_guesses = 0;  // as many as pay
    CHECK(same_bits(run_and_count(kTeller, setup, {request}).answers[0], serial));
  }
}

TEST_CASE(
    "guesses of another model change no request's answer, whatever kinds of layers they have") {
  struct Pair {
    const char* model;
    const char* draft;
  };
  for (const Pair& pair :
       {Pair{"qwen35-bf16", "glm47flash-bf16"}, Pair{"llama3-bf16", "gptoss-mxfp4"},
        Pair{"deepseekv4-bf16", "gemma4-e-bf16"}, Pair{"glm5next-bf16", "glm5next-bf16"}}) {
    CAPTURE(pair.model);
    const std::string model = golden_folder(pair.model);
    const GenerateRequest plain{.prompt = read_golden(model).prompt, .max_tokens = 24};
    std::vector<GenerateRequest> requests(4, plain);
    for (size_t i = 1; i < requests.size(); ++i) {
      requests[i].sampling.seed = i;
      requests[i].sampling.temperature = 0.5F * static_cast<float>(i);
    }
    requests[2].sampling.repetition_penalty = 1.3F;
    requests[3].chunk = 5;
    const std::vector<Answer> serial = run_ranks(model, {}, requests).answers;
    const bool has_states = std::string_view(pair.draft).starts_with("glm5next");
    for (const Ranks& cut : {Ranks{{1}}, Ranks{{2, 1}}, Ranks{{2, 1}, 2}}) {
      const Setup setup{
          .shares = cut.shares, .stages = cut.stages, .draft_model = golden_folder(pair.draft)};
      if (has_states) {
        CHECK(refusal(model, setup).find("it has recurrent layers") != std::string::npos);
        continue;
      }
      for (size_t i = 0; i < requests.size(); ++i) {
        const Drafted alone = run_and_count(model, setup, {requests[i]});
        CHECK(alone.answers[0].error == "");
        CHECK(same_bits(alone.answers[0], serial[i]));
        CHECK(alone.counts.guesses > 0);
      }
      const Drafted together = run_and_count(model, setup, requests);
      for (size_t i = 0; i < requests.size(); ++i) {
        CHECK(same_bits(together.answers[i], serial[i]));
      }
    }
  }
}

TEST_CASE(
    "tokens that the draft model lacks are no reason to stop, and others than the model's are") {
  const TemporaryFolder work;
  const std::filesystem::path draft = work.path() / "draft";
  write_random_model("llama3-bf16", {{"vocab_size", 500}, {"max_position_embeddings", 512}}, draft);
  std::string tokenizer = read_small_file(kTeller + "/tokenizer.json").value();
  REQUIRE(write_new_file(draft / "tokenizer.json", tokenizer).ok());
  GenerateRequest request{.prompt = {1, 403, 505, 407, 511}, .max_tokens = 40};
  GenerateRequest biased = request;
  biased.logit_bias = {{.token = 509, .bias = 100.0F}};
  for (const GenerateRequest& each : {request, biased}) {
    const Answer serial = run_ranks(kTeller, {}, {each}).answers[0];
    REQUIRE(serial.error == "");
    CHECK((serial.tokens[7] == 509) == !each.logit_bias.empty());
    const Setup setup{.shares = {2, 1}, .draft_model = draft.string(), .layer_guesses = 3};
    const Drafted drafted = run_and_count(kTeller, setup, {each});
    CHECK(same_bits(drafted.answers[0], serial));
    CHECK(drafted.counts.guesses > 0);
  }
  const std::string known = "\"q\": ";
  const size_t at = tokenizer.find(known);
  REQUIRE(at != std::string::npos);
  tokenizer.replace(at, known.size(), "\"\u00e9\": ");
  std::filesystem::remove(draft / "tokenizer.json");
  REQUIRE(write_new_file(draft / "tokenizer.json", tokenizer).ok());
  CHECK(refusal(kTeller, {.draft_model = draft.string()}).find("is not the same as in the model") !=
        std::string::npos);
}

TEST_CASE("a draft model with other tokens, or none, is refused with the reason") {
  const std::string model = golden_folder("llama3-bf16");
  CHECK(refusal(model, {.draft_model = golden_folder("gemma4-e-bf16")}) ==
        "the draft model " + golden_folder("gemma4-e-bf16") +
            " cannot be used: it has 192 tokens and the model 320");
  CHECK(refusal(model, {.draft_model = "/nowhere"}).find("/nowhere") != std::string::npos);
}
