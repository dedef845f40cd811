// Golden cases as GGUF files: the exact bits of the folder, as the tensors hold the same values;
// and rounded to a block type, the logits of a file that holds these values in F32.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "support/gguf_conversion.h"
#include "support/stored_models.h"

using namespace lockstep;
using namespace lockstep::testing;

namespace {

constexpr GgufCase kCases[] = {
    {.name = "llama-f32", .architecture = "llama", .is_interleaved = true},
    {.name = "mistral-bf16", .architecture = "llama", .is_interleaved = true},
    {.name = "ministral3-bf16", .architecture = "mistral3", .is_interleaved = true},
    {.name = "ministral3-bf16-l4scale", .architecture = "mistral3", .is_interleaved = true},
    {.name = "qwen2-bf16", .architecture = "qwen2"},
    {.name = "qwen3-bf16-tied", .architecture = "qwen3"},
    {.name = "qwen3moe-bf16", .architecture = "qwen3moe"},
    {.name = "glm4moe-bf16", .architecture = "glm4moe", .has_post_norm = true},
    {.name = "deepseekv3-bf16", .architecture = "deepseek2"},
    {.name = "deepseekv3-bf16", .architecture = "deepseek2", .splits_latent = true},
    {.name = "gptoss-mxfp4", .architecture = "gpt-oss", .is_gpt_oss = true, .has_post_norm = true},
    {.name = "minimaxm2-bf16", .architecture = "minimax-m2", .types = {7, 20}},
    {.name = "qwen35-bf16", .architecture = "qwen35"},
    {.name = "qwen35-f32-tied", .architecture = "qwen35"},
    {.name = "qwen35moe-bf16", .architecture = "qwen35moe"},
    {.name = "qwen3next-bf16", .architecture = "qwen3next"},
    {.name = "qwen3next-bf16", .architecture = "qwen3next", .joins_inputs = true},
    {.name = "qwen35moe-bf16", .architecture = "qwen35moe", .joins_experts = true},
    {.name = "gemma4-dense-bf16", .architecture = "gemma4"},
    {.name = "gemma4-e-bf16", .architecture = "gemma4"},
    {.name = "gemma4-moe-bf16", .architecture = "gemma4", .joins_experts = true, .types = {8, 7}},
    {.name = "glm47flash-bf16",
     .architecture = "deepseek2",
     .splits_latent = true,
     .is_glm = true,
     .types = {8, 2}},
    {.name = "deepseekv32-bf16", .architecture = "deepseek32", .splits_latent = true},
    {.name = "glmdsa-bf16", .architecture = "glm-dsa", .splits_latent = true},
    {.name = "glmdsa-shared-bf16", .architecture = "glm-dsa", .splits_latent = true},
    {.name = "glmdsa-shared-bf16",
     .architecture = "glm-dsa",
     .splits_latent = true,
     .lacks_indexer_types = true},
    {.name = "deepseekv4-bf16", .architecture = "deepseek4"},
    {.name = "kimilinear-bf16", .architecture = "kimi-linear"},
    {.name = "kimilinear-bf16", .architecture = "kimi-linear", .splits_latent = true},
    {.name = "mtp-qwen35-bf16", .architecture = "qwen35", .has_draft = true},
    {.name = "mtp-glmdsa-bf16",
     .architecture = "glm-dsa",
     .splits_latent = true,
     .has_draft = true},
    {.name = "mtp-glm4moe-bf16",
     .architecture = "glm4moe",
     .has_post_norm = true,
     .has_draft = true},
};

std::string folder_of(const GgufCase& subject) {
  return LOCKSTEP_SOURCE_DIR "/tests/data/golden/" + std::string(subject.name);
}

}  // namespace

TEST_CASE("golden cases as GGUF files give the exact bits of their folders") {
  for (const GgufCase& subject : kCases) {
    CAPTURE(std::string(subject.name));
    CAPTURE(subject.splits_latent);
    const std::string folder = folder_of(subject);
    const TemporaryFolder temporary;
    const std::string path = temporary.write("model.gguf", convert_to_gguf(folder, subject));
    const GenerateRequest request{.prompt = read_golden(folder).prompt,
                                  .max_tokens = 32,
                                  .prompt_logits = true,
                                  .draft_logits = subject.has_draft};
    for (const bool exact : {true, false}) {
      CAPTURE(exact);
      const bool drafts = subject.has_draft;
      const Answer expected =
          run_ranks(folder, {.exact = exact, .draft_layer = drafts}, {request}).answers[0];
      CHECK(expected.tokens.size() == 32);
      CHECK(expected.draft_logits.empty() == !drafts);
      for (const std::vector<double>& shares : {std::vector<double>{1}, {2, 1}}) {
        const Setup setup{.shares = shares, .exact = exact, .draft_layer = drafts};
        const Answer got = run_ranks(path, setup, {request}).answers[0];
        CHECK(same_bits(got, expected));
        CHECK(got.tokens == expected.tokens);
        CHECK(got.draft_logits == expected.draft_logits);
      }
    }
  }
}

TEST_CASE("golden cases rounded to types of GGUF give the logits of these values in F32") {
  constexpr uint32_t kTypes[] = {2, 7, 8, 20, 39};  // Q4_0, Q5_1, Q8_0, IQ4_NL, MXFP4
  const TemporaryFolder temporary;
  size_t next = 0;
  for (const GgufCase& subject : kCases) {
    CAPTURE(std::string(subject.name));
    CAPTURE(subject.splits_latent);
    const std::string folder = folder_of(subject);
    const Golden golden = read_golden(folder);
    const GenerateRequest request{.prompt = golden.prompt, .max_tokens = 0, .prompt_logits = true};
    // Two types per case, in turn.
    for (size_t i = 0; i < 2; ++i) {
      uint32_t type = subject.types[i];
      if (type == 0) type = kTypes[next++ % std::size(kTypes)];
      CAPTURE(type);
      const std::string wide =
          temporary.write("wide.gguf", convert_to_gguf(folder, subject, {type, true}));
      const std::string path =
          temporary.write("model.gguf", convert_to_gguf(folder, subject, {type}));
      const Answer values = run_ranks(wide, {.exact = true}, {request}).answers[0];
      Rows expected;
      for (const auto& row : values.logits) expected.emplace_back(row.begin(), row.end());
      check_answers(path, {golden.prompt, expected, golden.int8.rms_difference});
    }
  }
}
