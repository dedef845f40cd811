// Whole models on GPUs: the bits of the processor, alone, in a group of GPUs, and in a group that
// mixes both. Tests install a software GPU.
#include <doctest/doctest.h>

#if defined(LOCKSTEP_HAS_GPU)

#include "engine/spill.h"
#include "engine/variant.h"
#include "support/golden.h"
#include "support/rank_threads.h"
#include "support/temporary_folder.h"

using namespace lockstep;

namespace {

std::vector<Variant> variants_on_gpus() {
  return {
      {"one GPU", {.device = "vulkan"}},
      {"chunks of 7", {.device = "vulkan"}, 7},
      {"2 GPUs", {.shares = {1, 1}, .device = "vulkan"}},
      {"a GPU leads a processor, 3:1", {.shares = {3, 1}, .device = "vulkan,cpu"}},
      {"a processor leads a GPU over tcp",
       {.shares = {1, 1}, .link = LinkKind::kTcp, .device = "cpu,vulkan"}},
      {"3 ranks, 2:1:1", {.shares = {2, 1, 1}, .device = "cpu,vulkan,vulkan"}, 32},
      {"4 ranks", {.shares = {1, 1, 1, 1}, .device = "vulkan,cpu,cpu,vulkan"}},
      {"2 stages", {.shares = {1, 1}, .stages = 2, .device = "vulkan,cpu"}},
  };
}

// One of the variants, with one kind of rounding: all of them for each case would take minutes, as
// a software GPU compiles its kernels for each rank again. Most families have several cases.
void check_on_gpus(const std::string& folder, const Setup& rounding, const GenerateRequest& request,
                   size_t number) {
  Setup alone = rounding;
  alone.device = "cpu";
  const Answer reference = run_ranks(folder, alone, {request}).answers[0];
  REQUIRE(reference.error.empty());
  const std::vector<Variant> all = variants_on_gpus();
  const Variant& variant = all[number % all.size()];
  Setup setup = variant.setup;
  setup.exact = rounding.exact;
  setup.kv = rounding.kv;
  GenerateRequest varied = request;
  varied.chunk = variant.chunk;
  const Outcome outcome = run_ranks(folder, setup, {varied});
  CHECK_MESSAGE(same_bits(outcome.answers[0], reference), variant.name);
}

// A software GPU takes a tenth of a second for a token of DeepSeek V4. So the prompt of one case is
// whole, which completes an entry of 128 positions, that of another is cut, and the others, which
// differ in formats that other families have too, are left out.
bool is_slow_twin(const std::string& name) {
  return name.starts_with("deepseekv4") && !name.ends_with("-bf16") && !name.ends_with("-fp4");
}

GenerateRequest golden_request(const std::string& folder, int tokens) {
  constexpr size_t kShortPrompt = 40;
  std::vector<int32_t> prompt = read_golden(folder).prompt;
  if (folder.ends_with("deepseekv4-bf16")) prompt.resize(kShortPrompt);
  return {.prompt = std::move(prompt), .max_tokens = tokens, .prompt_logits = true};
}

}  // namespace

TEST_CASE("golden cases on GPUs have the bits of the processor") {
  size_t number = 0;
  for (const std::string& name : all_golden_cases()) {
    CAPTURE(name);
    if (is_slow_twin(name)) continue;
    const std::string folder = golden_folder(name);
    const bool exact = number % 2 == 1;
    const size_t variant = number / 2;  // each of them with both kinds of rounding
    check_on_gpus(folder, {.exact = exact}, golden_request(folder, 4), variant);
    ++number;
  }
}

TEST_CASE("a table of n-grams on the disk has the bits of the processor on a GPU") {
  const std::string folder = golden_folder("qwen4exp-bf16");
  const GenerateRequest request = golden_request(folder, 4);
  const Answer reference = run_ranks(folder, {}, {request}).answers[0];
  const Answer found =
      run_ranks(folder, {.shares = {2, 1}, .device = "vulkan,cpu", .ngrams_on_disk = true},
                {request})
          .answers[0];
  CHECK(reference.error == "");
  CHECK(same_bits(found, reference));
}

TEST_CASE("each kind of keys and values has the bits of the processor on a GPU") {
  size_t number = 0;
  for (const char* name :
       {"llama3-bf16", "gptoss-mxfp4", "deepseekv3-bf16", "deepseekv32-bf16", "glm5next-bf16"}) {
    CAPTURE(name);
    for (const KvKind kind : {KvKind::kF32, KvKind::kBF16, KvKind::kQ8}) {
      const std::string folder = golden_folder(name);
      check_on_gpus(folder, {.kv = kind}, golden_request(folder, 4), number++);
    }
  }
}

TEST_CASE("draft layers on GPUs have the bits of the processor") {
  const char* const kDevices[] = {"vulkan",     "cpu,vulkan", "vulkan,cpu", "vulkan",
                                  "cpu,vulkan", "vulkan,cpu", "cpu,vulkan"};
  size_t number = 0;
  for (const char* name :
       {"mtp-glm4moe-bf16", "mtp-glmdsa-bf16", "mtp-qwen35-bf16", "glm5next-bf16",
        "deepseekv4-bf16", "qwen4exp-bf16", "deepseekv4-dspark"}) {
    CAPTURE(name);
    const std::string folder = golden_folder(name);
    GenerateRequest request = golden_request(folder, 12);
    const std::string devices = kDevices[number++];
    const std::vector<double> shares(devices.find(',') == std::string::npos ? 1 : 2, 1.0);
    for (const bool draft_logits : {true, false}) {
      request.draft_logits = draft_logits;
      const Setup guessing{.draft_layer = true, .layer_guesses = 3};
      const Answer expected = run_ranks(folder, guessing, {request}).answers[0];
      Setup setup = guessing;
      setup.shares = shares;
      setup.device = devices;
      const Answer answer = run_ranks(folder, setup, {request}).answers[0];
      CHECK(same_bits(answer, expected));
      CHECK(same_bits({.logits = answer.draft_logits, .tokens = {}},
                      {.logits = expected.draft_logits, .tokens = {}}));
      CHECK(expected.draft_logits.empty() != draft_logits);
    }
  }
}

TEST_CASE("stories260K tells its story on a GPU, with others in its batch") {
  const std::string folder = std::string(LOCKSTEP_SOURCE_DIR) + "/models/stories260K";
  std::vector<GenerateRequest> requests;
  for (int i = 0; i < 5; ++i) {
    std::vector<int32_t> prompt;
    for (int k = 0; k < 3 + 20 * i; ++k) prompt.push_back(3 + (k * 37 + i) % 240);
    requests.push_back({.prompt = prompt, .max_tokens = 40, .prompt_logits = true});
  }
  const std::vector<Answer> expected = run_ranks(folder, {}, requests).answers;
  for (const char* devices : {"vulkan,vulkan", "vulkan,cpu"}) {
    const Outcome outcome = run_ranks(folder, {.shares = {2, 1}, .device = devices}, requests);
    for (size_t i = 0; i < requests.size(); ++i) {
      CHECK(same_bits(outcome.answers[i], expected[i]));
    }
  }
}

TEST_CASE("a state that a GPU saves on disk a processor resumes from, and the other way") {
  for (const char* name : {"qwen3next-bf16", "glm5next-bf16", "qwen4exp-bf16"}) {
    CAPTURE(name);
    const std::string folder = golden_folder(name);
    const GenerateRequest request = logged_generation_of(text_of_any_model(150, 1), 3);
    const Answer computed = run_ranks(folder, {}, {request}).answers[0];
    for (const char* devices : {"vulkan", "cpu", "cpu,vulkan"}) {
      TemporaryFolder cache;
      Setup setup{.device = devices, .cache_folders = {cache.path().string()}};
      if (setup.device.find(',') != std::string::npos) setup.shares = {1, 1};
      const Setup other{.device = setup.device == "cpu" ? "vulkan" : "cpu",
                        .cache_folders = setup.cache_folders};
      CHECK(has_same_bits(run_ranks(folder, setup, {request}).answers[0], computed));
      const Answer resumed = run_ranks(folder, other, {request}).answers[0];
      CHECK(has_same_bits(resumed, computed));
      CHECK(resumed.cached_tokens == 128);
    }
  }
}

#endif
