// Stages combined with several ranks per stage, up to eight ranks, in every shape and with shares
// from equal to seven to one: the bits of a single rank.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "support/golden.h"
#include "support/random_model.h"
#include "support/rank_threads.h"
#include "support/temporary_folder.h"

using namespace lockstep;

namespace {

constexpr int kRanksMax = 8;
constexpr int kLargestShare = 7;

struct Division {
  Setup setup;
  int chunk = 0;
};

// Shares from 1 to 7, different in every stage.
std::vector<double> uneven_shares(int ranks) {
  std::vector<double> shares;
  for (int rank = 0; rank < ranks; ++rank) shares.push_back(1 + (rank * 5 + ranks) % kLargestShare);
  return shares;
}

// Links and chunks change with the division.
void add_division(std::vector<Division>& all, std::vector<double> shares, int stages) {
  Division& added = all.emplace_back();
  added.setup.shares = std::move(shares);
  added.setup.stages = stages;
  added.setup.link = all.size() % 2 == 0 ? LinkKind::kTcp : LinkKind::kShm;
  added.chunk = all.size() % 3 == 0 ? 7 : 0;
}

std::vector<Division> divisions_of(int layers) {
  std::vector<Division> all;
  for (int stages = 1; stages <= std::min(layers, kRanksMax); ++stages) {
    for (int ranks = stages; ranks <= kRanksMax; ranks += stages) {
      add_division(all, std::vector<double>(static_cast<size_t>(ranks), 1.0), stages);
      if (ranks > 1) add_division(all, uneven_shares(ranks), stages);
    }
  }
  for (int share = 2; share <= kLargestShare; ++share) {
    for (const int stages : {1, 2}) {
      add_division(all, {double(share), 1}, stages);
      add_division(all, {1, double(share)}, stages);
    }
  }
  return all;
}

std::string description_of(const Setup& setup) {
  std::string text = std::to_string(setup.stages) + " stages, shares";
  for (const double share : setup.shares) text += " " + std::to_string(static_cast<int>(share));
  return text;
}

void check_all_cuts(const std::string& folder, int layers, const std::vector<int32_t>& prompt,
                    int bits) {
  const GenerateRequest request{.prompt = prompt, .max_tokens = 8, .prompt_logits = true};
  const Answer reference = run_ranks(folder, {.bits = bits}, {request}).answers[0];
  REQUIRE(reference.logits.size() == prompt.size());
  for (const float logit : reference.logits.back()) REQUIRE(std::isfinite(logit));
  for (Division& division : divisions_of(layers)) {
    GenerateRequest varied = request;
    varied.chunk = division.chunk;
    division.setup.bits = bits;
    const Outcome outcome = run_ranks(folder, division.setup, {varied});
    CHECK_MESSAGE(same_bits(outcome.answers[0], reference), description_of(division.setup));
  }
}

}  // namespace

TEST_CASE("golden cases with every possible number of stages and every number of ranks") {
  const std::pair<const char*, int> cases[] = {
      {"llama3-bf16", 2},     {"qwen3moe-bf16", 2},      {"qwen3moe-q4-g64", 2},
      {"deepseekv3-bf16", 3}, {"kimik2-q8-g32", 3},      {"gptoss-mxfp4", 2},
      {"glmdsa-bf16", 2},     {"glmdsa-shared-bf16", 3}, {"glm5next-bf16", 5},
      {"deepseekv4-fp4", 3},  {"qwen4exp-fp8", 3}};
  for (const auto& [name, layers] : cases) {
    CAPTURE(name);
    check_all_cuts(golden_folder(name), layers, read_golden(golden_folder(name)).prompt, 0);
  }
}

TEST_CASE("models of eight layers in up to eight stages, with all numbers of ranks") {
  struct Case {
    const char* config_of;
    int bits = 0;
  };
  JsonArray types;
  for (int layer = 0; layer < 8; ++layer) {
    types.emplace_back(layer % 2 == 0 ? "sliding_attention" : "full_attention");
  }
  for (const Case& subject :
       {Case{"llama3-bf16"}, Case{"llama3-bf16", 4}, Case{"qwen3moe-bf16"}, Case{"deepseekv3-bf16"},
        Case{"gptoss-mxfp4"}, Case{"gemma4-moe-bf16"}}) {
    CAPTURE(subject.config_of);
    CAPTURE(subject.bits);
    const TemporaryFolder work;
    const std::filesystem::path model = work.path() / "model";
    JsonObject changes{{"num_hidden_layers", 8}};
    if (subject.config_of == std::string("gptoss-mxfp4")) {
      changes["layer_types"] = types;
      changes["quantization_config"] = nullptr;
    }
    if (subject.config_of == std::string("gemma4-moe-bf16")) {
      changes["layer_types"] = types;
      changes["moe_intermediate_size"] = 128;  // eight leaves: some ranks have several subtrees
    }
    write_random_model(subject.config_of, changes, model);
    check_all_cuts(model.string(), 8, read_golden(golden_folder(subject.config_of)).prompt,
                   subject.bits);
  }
}
