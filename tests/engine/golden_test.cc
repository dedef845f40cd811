// The forward pass against reference logits, and the promise of one answer: the way a model is run
// never changes a bit.
#include "support/golden.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/variant.h"
#include "support/rank_threads.h"

using namespace lockstep;

namespace {

constexpr double kTolerance = 1e-3;
const std::string kSource = LOCKSTEP_SOURCE_DIR;

// How answers are rounded: options that change bits.
struct Precision {
  bool exact = false;
  std::optional<KvKind> kv{};

  Setup setup(Setup setup) const {
    setup.exact = exact;
    setup.kv = kv;
    return setup;
  }
};

std::vector<Variant> variants(const Precision& precision) {
  std::vector<Variant> all;
  for (const LinkKind link : {LinkKind::kShm, LinkKind::kTcp}) {
    const std::string link_name = link == LinkKind::kShm ? "shm" : "tcp";
    for (const auto& [name, shares] :
         std::vector<std::pair<std::string, std::vector<double>>>{{"2 ranks", {1, 1}},
                                                                  {"3 ranks", {1, 1, 1}},
                                                                  {"4 ranks", {1, 1, 1, 1}},
                                                                  {"shares 3:1", {3, 1}},
                                                                  {"shares 2:1:1", {2, 1, 1}}}) {
      all.push_back({name + " over " + link_name, {.shares = shares, .link = link}});
    }
  }
  // More ranks than key/value heads: these are replicated, and in some models ranks have no heads.
  all.push_back({"8 ranks", {.shares = std::vector<double>(8, 1.0)}});
  // Pipeline stages: of one rank, of several, uneven. See pipeline_test.cc for more.
  all.push_back({"2 stages", {.shares = {1, 1}, .stages = 2}});
  all.push_back({"2 stages of 2 ranks", {.shares = {3, 1, 1, 2}, .stages = 2}, 7});
  all.push_back({"2 stages on the test device",
                 {.shares = {7, 1}, .stages = 2, .link = LinkKind::kTcp, .device = "delayed"}});
  all.push_back({"2 threads", {.threads = 2}});
  all.push_back({"2 ranks with 2 threads", {.shares = {1, 1}, .threads = 2}});
  for (const int chunk : {1, 7, 32}) {
    all.push_back({"chunks of " + std::to_string(chunk), {}, chunk});
    all.push_back({"2 ranks, chunks of " + std::to_string(chunk), {.shares = {1, 1}}, chunk});
  }
  all.push_back({"test device", {.device = "delayed"}});
  all.push_back({"2 ranks on the test device", {.shares = {3, 1}, .device = "delayed"}});
  all.push_back(
      {"2 ranks of different speeds", {.shares = {3, 1}, .device = "slowed:100,slowed:50/1"}});
  for (const KernelTable* table : available_kernels()) {
    all.push_back({table->name, {.isa = table->name}});
    all.push_back(
        {std::string("3 ranks, ") + table->name, {.shares = {1, 2, 1}, .isa = table->name}, 7});
  }
  for (Variant& variant : all) variant.setup = precision.setup(variant.setup);
  return all;
}

GenerateRequest prompt_and_greedy(const std::vector<int32_t>& prompt, int tokens, int chunk) {
  return {.prompt = prompt, .max_tokens = tokens, .prompt_logits = true, .chunk = chunk};
}

double largest_difference(const Golden& golden, const Answer& answer) {
  double largest = 0;
  for (const GoldenRow& row : golden.logits) {
    const std::vector<float>& got = answer.logits[row.position];
    REQUIRE(got.size() == row.values.size());
    for (size_t i = 0; i < got.size(); ++i) {
      largest = std::max(largest, std::abs(static_cast<double>(got[i]) - row.values[i]));
    }
  }
  return largest;
}

// A third of the variants for each of several cases of one family with long prompts, which would
// take minutes; its plain case has all of them.
size_t step_for(std::string_view name, const Golden& golden) {
  constexpr size_t kLongPrompt = 100;
  const bool is_plain = name.find("bf16") != std::string_view::npos;
  return golden.prompt.size() > kLongPrompt && !is_plain ? 3 : 1;
}

// `step`: every so many of the variants.
void check_every_variant(const std::string& folder, const Precision& precision,
                         const GenerateRequest& request, const Answer& reference, size_t step = 1) {
  const std::vector<Variant> all = variants(precision);
  for (size_t i = 0; i < all.size(); i += step) {
    const Variant& variant = all[i];
    GenerateRequest varied = request;
    varied.chunk = variant.chunk;
    const Outcome outcome = run_ranks(folder, variant.setup, {varied});
    CHECK_MESSAGE(same_bits(outcome.answers[0], reference), variant.name);
  }
}

// Over this part of the positions, those where both differ least.
double rms_difference(const Answer& a, const Answer& b, double part = 1) {
  std::vector<double> rows;  // mean squares
  for (size_t row = 0; row < a.logits.size(); ++row) {
    double sum = 0;
    for (size_t i = 0; i < a.logits[row].size(); ++i) {
      const double difference = double{a.logits[row][i]} - double{b.logits[row][i]};
      sum += difference * difference;
    }
    rows.push_back(sum / static_cast<double>(a.logits[row].size()));
  }
  std::sort(rows.begin(), rows.end());
  rows.resize(static_cast<size_t>(part * static_cast<double>(rows.size())));
  return std::sqrt(std::accumulate(rows.begin(), rows.end(), 0.0) /
                   static_cast<double>(rows.size()));
}

// The number of positions from `first` on at which both have the same best token.
int top1_agreement(const Answer& a, const Answer& b, size_t first) {
  const auto best = [](const std::vector<float>& row) {
    return std::max_element(row.begin(), row.end()) - row.begin();
  };
  int same = 0;
  for (size_t row = first; row < a.logits.size(); ++row) {
    if (best(a.logits[row]) == best(b.logits[row])) ++same;
  }
  return same;
}

// The same prompt batched with four others of different lengths, in the same steps.
void check_in_company(const std::string& folder, const Precision& precision,
                      const GenerateRequest& request, const Answer& reference) {
  for (const std::vector<double>& shares : {std::vector<double>{1}, std::vector<double>{2, 1}}) {
    std::vector<GenerateRequest> requests;
    for (size_t i = 0; i < 4; ++i) {
      const size_t size = std::min(request.prompt.size(), 3 + 5 * i);
      requests.push_back(
          {.prompt = {request.prompt.rbegin(), request.prompt.rbegin() + static_cast<int>(size)},
           .max_tokens = static_cast<int>(8 + 11 * i),
           .sampling = {.temperature = 1.0f, .seed = i}});
    }
    requests.insert(requests.begin() + 2, request);
    const Outcome outcome = run_ranks(folder, precision.setup({.shares = shares}), requests);
    CHECK(same_bits(outcome.answers[2], reference));
  }
}

}  // namespace

TEST_CASE("logits and greedy tokens of the golden cases, the same bits however they are computed") {
  for (const std::string& name : all_golden_cases()) {
    CAPTURE(name);
    const std::string folder = golden_folder(name);
    const Golden golden = read_golden(folder);
    const GenerateRequest request = prompt_and_greedy(golden.prompt, 32, 0);
    const Answer reference =
        run_ranks(folder, {.isa = "scalar", .exact = true}, {request}).answers[0];
    REQUIRE(reference.logits.size() == golden.prompt.size());
    CHECK(largest_difference(golden, reference) < kTolerance);
    CHECK(reference.tokens == golden.greedy);
    CHECK(reference.reason == FinishReason::kLength);
    check_every_variant(folder, {.exact = true}, request, reference, step_for(name, golden));
    check_in_company(folder, {.exact = true}, request, reference);
  }
}

TEST_CASE("activations of 8 bits cost no more than their rounding, and the bits stay the same") {
  for (const char* name : kQuantisedGoldenCases) {
    CAPTURE(name);
    const std::string folder = golden_folder(name);
    const Golden golden = read_golden(folder);
    // Prompt and continuation, teacher-forced, as in the simulation.
    std::vector<int32_t> tokens = golden.prompt;
    tokens.insert(tokens.end(), golden.greedy.begin(), golden.greedy.end() - 1);
    const GenerateRequest forced = prompt_and_greedy(tokens, 0, 0);
    const Answer exact = run_ranks(folder, {.exact = true}, {forced}).answers[0];
    const Precision activations{.kv = KvKind::kF32};
    const Setup scalar = activations.setup({.isa = "scalar"});
    const Answer rounded = run_ranks(folder, scalar, {forced}).answers[0];
    // Where rounding changes which experts and pools are chosen, the logits of a few positions
    // jump.
    const bool jumps = std::string_view(name).starts_with("glm5next-q4");
    const double most = (jumps ? 1 : 1.5) * golden.int8.rms_difference;
    CHECK(rms_difference(rounded, exact, jumps ? 0.8 : 1) <= most);
    CHECK(top1_agreement(rounded, exact, golden.prompt.size() - 1) >=
          golden.int8.top1_agreement - (jumps ? 4 : 2));
    // The next request has these prompts too, and generates.
    const size_t step = step_for(name, golden);
    check_every_variant(folder, activations, forced, rounded, 4 * step);
    const GenerateRequest request = prompt_and_greedy(golden.prompt, 32, 0);
    const Answer greedy = run_ranks(folder, scalar, {request}).answers[0];
    check_every_variant(folder, activations, request, greedy, step);
    check_in_company(folder, activations, request, greedy);
  }
}

TEST_CASE("keys and values of each kind cost no more than their rounding, with the same bits") {
  struct Case {
    std::string folder;
    bool is_smooth = false;  // no choice of experts and no activations of 8 bits, which may jump
  };
  // Grouped, windowed, latent, sparse and compressed attention, and heads of 8.
  for (const Case& each :
       {Case{golden_folder("llama3-bf16"), true}, Case{golden_folder("gptoss-mxfp4")},
        Case{golden_folder("deepseekv3-bf16")}, Case{golden_folder("deepseekv32-bf16")},
        Case{golden_folder("deepseekv4-bf16")}, Case{kSource + "/models/stories260K", true}}) {
    const std::string& folder = each.folder;
    CAPTURE(folder);
    std::vector<int32_t> prompt;
    for (int i = 0; i < 90; ++i) prompt.push_back(3 + i * 37 % 188);
    const GenerateRequest request = prompt_and_greedy(prompt, 20, 0);
    const Answer whole = run_ranks(folder, {.kv = KvKind::kF32}, {request}).answers[0];
    const Precision usual{};
    CHECK(same_bits(run_ranks(folder, usual.setup({}), {request}).answers[0],
                    run_ranks(folder, {.kv = kKvDefault}, {request}).answers[0]));
    for (const KvKind kv : {KvKind::kBF16, KvKind::kF16, KvKind::kQ8}) {
      CAPTURE(kv_kind_name(kv));
      const Precision precision{.kv = kv};
      const Answer reference =
          run_ranks(folder, precision.setup({.isa = "scalar"}), {request}).answers[0];
      const double rms = rms_difference(reference, whole);
      CHECK(rms > 0);
      if (each.is_smooth) CHECK(rms < (kv == KvKind::kF16 ? 0.01 : 0.2));
      check_every_variant(folder, precision, request, reference);
      check_in_company(folder, precision, request, reference);
    }
  }
}

TEST_CASE("stories260K tells the expected stories, the same bits however they are computed") {
  const std::string folder = kSource + "/models/stories260K";
  const Json file = json_of_file(kSource + "/tests/data/stories260K/expected_greedy.json");
  std::vector<GenerateRequest> requests;
  for (const Json& story : file.as_array()) {
    const auto expected = ints_of(*find(story, "greedy_ids"));
    requests.push_back(prompt_and_greedy(ints_of(*find(story, "prompt_ids")),
                                         static_cast<int>(expected.size()), 0));
  }
  const Precision exact{.kv = KvKind::kF32};
  const Outcome together = run_ranks(folder, exact.setup({.shares = {1, 1}}), requests);
  for (size_t i = 0; i < requests.size(); ++i) {
    CHECK(together.answers[i].tokens == ints_of(*find(file.as_array()[i], "greedy_ids")));
  }
  const GenerateRequest& last = requests.back();
  const Answer reference = run_ranks(folder, exact.setup({.isa = "scalar"}), {last}).answers[0];
  CHECK(same_bits(together.answers.back(), reference));
  check_every_variant(folder, exact, last, reference);
}

TEST_CASE("seeded sampling gives the same text on any ranks and in any batch") {
  const std::string folder = golden_folder("llama3-bf16");
  const Golden golden = read_golden(folder);
  for (const SamplingOptions sampling :
       {SamplingOptions{.temperature = 0.8f, .seed = 7},
        SamplingOptions{.temperature = 1.2f, .top_k = 20, .top_p = 0.9f, .seed = 8}}) {
    GenerateRequest request{.prompt = golden.prompt, .max_tokens = 24, .sampling = sampling};
    const auto alone = run_ranks(folder, {}, {request}).answers[0].tokens;
    CHECK(alone.size() == 24);
    CHECK(alone != golden.greedy);
    for (const Variant& variant : variants({})) {
      GenerateRequest varied = request;
      varied.chunk = variant.chunk;
      CHECK_MESSAGE(run_ranks(folder, variant.setup, {varied}).answers[0].tokens == alone,
                    variant.name);
    }
    GenerateRequest other = request;
    other.sampling.seed += 100;
    const Outcome company = run_ranks(folder, {.shares = {1, 1}}, {other, request, other});
    CHECK(company.answers[1].tokens == alone);
    CHECK(company.answers[0].tokens != alone);
  }
}
