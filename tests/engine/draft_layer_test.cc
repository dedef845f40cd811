// The draft layer: its logits against references, and guesses that cost no bit of the answer.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "engine/variant.h"
#include "support/drafted.h"
#include "support/golden.h"
#include "support/planted_drafts.h"
#include "support/temporary_folder.h"

using namespace lockstep;

namespace {

constexpr double kTolerance = 1e-3;
constexpr int kTokens = 32;
constexpr const char* kPlanted = "mtp-glm4moe-bf16";

Drafted run_drafting(const std::string& model, Setup setup,
                     const std::vector<GenerateRequest>& requests) {
  setup.draft_layer = true;
  return run_and_count(model, setup, requests);
}

bool same_draft_bits(const Answer& a, const Answer& b) {
  return same_bits({.logits = a.draft_logits, .tokens = a.tokens},
                   {.logits = b.draft_logits, .tokens = b.tokens});
}

// A golden case's references: the logits of some positions, and what speculative decoding with
// three guesses in each round gives.
struct GoldenDrafts {
  size_t block = 1;               // rows after each token: guesses that are made at once
  std::vector<GoldenRow> logits;  // of rows that are counted like this
  // Not in all cases: after the last token of the prompt, then after each greedy token; their
  // margins; and (rounds).
  std::vector<int32_t> best;
  std::vector<double> margin;
  std::vector<int> accepted;
};

std::vector<double> numbers_of(const Json& list) {
  std::vector<double> numbers;
  for (const Json& value : list.as_array()) numbers.push_back(value.to_number<double>());
  return numbers;
}

// Blocks of guesses: one in the prompt, then after each token from the prompt's last one on.
GoldenDrafts read_golden_blocks(const Json& dspark, size_t prompt) {
  GoldenDrafts golden;
  golden.block = static_cast<size_t>(find(dspark, "block_size")->as_int64());
  for (const Json& each : find(dspark, "drafts")->as_array()) {
    const auto position = static_cast<size_t>(find(each, "position")->as_int64());
    if (const Json* values = find(each, "values")) {
      for (size_t i = 0; i < golden.block; ++i) {
        golden.logits.push_back({position * golden.block + i, numbers_of(values->as_array()[i])});
      }
    }
    if (position < prompt - 1) continue;
    REQUIRE(position == prompt - 1 + golden.best.size() / golden.block);
    const std::vector<int32_t> tokens = ints_of(*find(each, "tokens"));
    const std::vector<double> margins = numbers_of(*find(each, "margin"));
    golden.best.insert(golden.best.end(), tokens.begin(), tokens.end());
    golden.margin.insert(golden.margin.end(), margins.begin(), margins.end());
  }
  return golden;
}

GoldenDrafts read_golden_drafts(const std::string& folder) {
  const Json file = json_of_file(folder + "/golden.json");
  if (const Json* dspark = find(file, "dspark")) {
    return read_golden_blocks(*dspark, find(file, "prompt")->as_array().size());
  }
  const Json& mtp = *find(file, "mtp");
  GoldenDrafts golden;
  // GLM-5.3's file also has those of programs that leave the first embedding out.
  const Json* kept = find(mtp, "logits_first_embedding_kept");
  for (const Json& row : (kept ? kept : find(mtp, "logits"))->as_array()) {
    GoldenRow& added = golden.logits.emplace_back();
    added.position = static_cast<size_t>(find(row, "position")->as_int64());
    added.values = numbers_of(*find(row, "values"));
  }
  const auto read_best = [&](const Json& of, std::string_view tokens) {
    golden.best = ints_of(*find(of, tokens));
    golden.margin = numbers_of(*find(of, "margin"));
  };
  if (find(mtp, "top1")) read_best(mtp, "top1");  // DeepSeek V4's file
  if (!find(mtp, "draft")) return golden;
  read_best(*find(mtp, "draft"), "tokens");
  for (const Json& round : find(*find(mtp, "speculative"), "rounds")->as_array()) {
    golden.accepted.push_back(static_cast<int>(find(round, "accepted")->as_int64()));
  }
  return golden;
}

// The counts that these rounds give if the last ones make only guesses that can be used.
DraftCounts counts_of(const GoldenDrafts& golden) {
  DraftCounts counts;
  int left = kTokens - 1;  // the first token comes from the prompt
  for (const int accepted : golden.accepted) {
    const int guesses = std::min(3, left - 1);
    const int right = std::min(accepted, guesses);
    counts.steps += guesses > 0 ? 1 : 0;
    counts.guesses += static_cast<uint64_t>(guesses);
    counts.right += static_cast<uint64_t>(right);
    left -= right + 1;
  }
  CHECK(left == 0);
  return counts;
}

GenerateRequest draft_request(const std::vector<int32_t>& prompt) {
  return {.prompt = prompt, .max_tokens = kTokens, .prompt_logits = true, .draft_logits = true};
}

// Ranks that share layers, and stages of a pipeline.
std::vector<Setup> cuts() {
  return {{.shares = {1}},
          {.shares = {1, 1}},
          {.shares = {3, 1, 2}},
          {.shares = {1, 1, 1, 1}},
          {.shares = {1, 1}, .stages = 2},
          {.shares = {2, 1, 1, 1}, .stages = 2, .link = LinkKind::kTcp}};
}

std::vector<Variant> variants() {
  return {{"2 ranks", {.shares = {1, 1}}},
          {"shares 3:1:2", {.shares = {3, 1, 2}}, 7},
          {"4 ranks over tcp", {.shares = {1, 1, 1, 1}, .link = LinkKind::kTcp}, 32},
          {"8 ranks", {.shares = std::vector<double>(8, 1.0)}},
          {"2 threads", {.threads = 2}},
          {"chunks of 1", {}, 1},
          {"chunks of 5", {}, 5},
          {"2 ranks on the test device", {.shares = {3, 1}, .device = "delayed"}, 7},
          {"scalar", {.isa = "scalar"}}};
}

// With bits and exactness of `setup`.
void check_variants(const std::string& model, const Setup& setup, const GenerateRequest& request,
                    const Answer& reference) {
  for (Variant variant : variants()) {
    variant.setup.exact = setup.exact;
    variant.setup.bits = setup.bits;
    GenerateRequest varied = request;
    varied.chunk = variant.chunk;
    const Answer answer = run_drafting(model, variant.setup, {varied}).answers[0];
    CHECK_MESSAGE(same_bits(answer, reference), variant.name);
    CHECK_MESSAGE(same_draft_bits(answer, reference), variant.name);
  }
}

// Requests whose tokens are chosen in every way.
std::vector<GenerateRequest> all_kinds(const std::vector<int32_t>& prompt) {
  const GenerateRequest plain{.prompt = prompt, .max_tokens = kTokens, .draft_tokens = 8};
  std::vector<GenerateRequest> all(15, plain);
  for (size_t i = 1; i < all.size(); ++i) all[i].sampling.seed = 7 * i;
  for (size_t i = 1; i < 9; ++i) all[i].sampling.temperature = 0.25F * static_cast<float>(i);
  all[2].sampling.top_k = 5;
  all[3].sampling.top_p = 0.8F;
  all[4].sampling.min_p = 0.1F;
  all[5].sampling.typical_p = 0.7F;
  all[6].top_logprobs = 3;
  all[7].min_tokens = 10;
  all[7].stop_ids = {3, 5, 7, 11, 13, 17, 19, 23};
  all[8].logit_bias = {{.token = 9, .bias = 4.0F}, {.token = 12, .bias = -50.0F}};
  all[9].sampling.repetition_penalty = 1.3F;
  all[10].sampling.presence_penalty = 0.5F;
  all[10].sampling.frequency_penalty = 0.5F;
  all[11].sampling.dry_multiplier = 0.8F;
  all[12].prompt_logits = true;
  all[12].chunk = 5;
  all[13].stop_ids = {106, 29, 15, 40, 41, 42};
  all[14].resumed_tokens = 3;
  all[14].max_tokens = 90;
  return all;
}

void check_same_answers(const std::vector<Answer>& answers, const std::vector<Answer>& serial) {
  for (size_t i = 0; i < serial.size(); ++i) {
    CAPTURE(i);
    CHECK(serial[i].error == "");
    CHECK(answers[i].error == "");
    CHECK(same_bits(answers[i], serial[i]));
    CHECK(answers[i].reason == serial[i].reason);
    CHECK(answers[i].logprobs.size() == serial[i].logprobs.size());
  }
}

}  // namespace

TEST_CASE("the draft layer's logits are the golden ones, with the same bits however it is run") {
  for (const std::string& name : draft_logits_cases()) {
    CAPTURE(name);
    const std::string folder = golden_folder(name);
    const Golden golden = read_golden(folder);
    const GoldenDrafts drafts = read_golden_drafts(folder);
    const GenerateRequest request = draft_request(golden.prompt);
    const Setup exact{.exact = true};
    const Answer reference = run_drafting(folder, exact, {request}).answers[0];
    REQUIRE(reference.error == "");
    // A row for each token that has a successor, but for the last one chosen, which references may
    // have.
    REQUIRE(reference.draft_logits.size() == drafts.block * (golden.prompt.size() + kTokens - 2));
    for (const GoldenRow& row : drafts.logits) {
      if (row.position >= reference.draft_logits.size()) continue;
      for (size_t i = 0; i < row.values.size(); ++i) {
        const double got = double{reference.draft_logits[row.position][i]};
        CHECK(std::abs(got - row.values[i]) < kTolerance);
      }
    }
    for (size_t i = 0; i < drafts.best.size(); ++i) {
      const size_t at = drafts.block * (golden.prompt.size() - 1) + i;
      if (at >= reference.draft_logits.size()) break;
      if (drafts.margin[i] < 2 * kTolerance) continue;
      const std::vector<float>& row = reference.draft_logits[at];
      CHECK(std::max_element(row.begin(), row.end()) - row.begin() == drafts.best[i]);
    }
    GenerateRequest plain = request;
    plain.draft_logits = false;
    const Answer serial = run_ranks(folder, exact, {plain}).answers[0];
    CHECK(same_bits(reference, serial));
    check_variants(folder, exact, request, reference);
  }
}

TEST_CASE("a draft layer that is quantised has the same bits over any ranks") {
  for (const std::string& name : draft_logits_cases()) {
    CAPTURE(name);
    if (!name.ends_with("-bf16")) continue;  // the others are quantised
    const std::string folder = golden_folder(name);
    const GenerateRequest request = draft_request(read_golden(folder).prompt);
    const Answer reference = run_drafting(folder, {.bits = 4}, {request}).answers[0];
    REQUIRE(reference.error == "");
    CHECK(reference.draft_logits.size() == request.prompt.size() + kTokens - 2);
    check_variants(folder, {.bits = 4}, request, reference);
  }
}

TEST_CASE("three guesses in every step are as often right as in the references") {
  for (const char* name : kDraftGoldenCases) {
    CAPTURE(name);
    const std::string folder = golden_folder(name);
    const Golden golden = read_golden(folder);
    const DraftCounts expected = counts_of(read_golden_drafts(folder));
    const GenerateRequest request{
        .prompt = golden.prompt, .max_tokens = kTokens, .draft_tokens = 8};
    for (Setup setup :
         {Setup{.shares = {1}}, Setup{.shares = {2, 1}}, Setup{.shares = {1, 1}, .stages = 2}}) {
      setup.exact = true;
      setup.layer_guesses = 3;
      const Drafted drafted = run_drafting(folder, setup, {request});
      CHECK(drafted.answers[0].tokens == golden.greedy);
      CHECK(drafted.counts.steps == expected.steps);
      CHECK(drafted.counts.guesses == expected.guesses);
      CHECK(drafted.counts.right == expected.right);
    }
  }
}

TEST_CASE("guesses of a block are as often right as in the references") {
  const std::string folder = golden_folder("deepseekv4-dspark");
  const Golden golden = read_golden(folder);
  const GoldenDrafts drafts = read_golden_drafts(folder);
  for (const int most : {1, 3, 5, 6}) {
    CAPTURE(most);
    DraftCounts expected;
    for (int made = 1; made < kTokens;) {  // the first token comes from the prompt
      const auto first = static_cast<size_t>(made - 1) * drafts.block;
      const int guesses = std::min({most, static_cast<int>(drafts.block), kTokens - made - 1});
      int right = 0;
      while (right < guesses && drafts.best[first + static_cast<size_t>(right)] ==
                                    golden.greedy[static_cast<size_t>(made + right)]) {
        ++right;
      }
      if (guesses > 0)
        expected.add({.steps = 1,
                      .guesses = static_cast<uint64_t>(guesses),
                      .right = static_cast<uint64_t>(right)});
      made += right + 1;
    }
    for (const std::vector<double>& shares : {std::vector<double>{1}, std::vector<double>{2, 1}}) {
      const Drafted drafted =
          run_drafting(folder, {.shares = shares, .exact = true, .layer_guesses = most},
                       {{.prompt = golden.prompt, .max_tokens = kTokens}});
      CHECK(drafted.answers[0].tokens == golden.greedy);
      CHECK(drafted.counts.steps == expected.steps);
      CHECK(drafted.counts.guesses == expected.guesses);
      CHECK(drafted.counts.right == expected.right);
    }
  }
}

TEST_CASE("guesses change no request's answer, whatever is guessed and however it is chosen") {
  for (const std::string& name : draft_logits_cases()) {
    CAPTURE(name);
    const std::string folder = golden_folder(name);
    const std::vector<GenerateRequest> requests = all_kinds(read_golden(folder).prompt);
    std::vector<Answer> serial;
    for (const GenerateRequest& request : requests) {
      GenerateRequest plain = request;
      plain.draft_tokens = 0;
      serial.push_back(run_ranks(folder, {}, {plain}).answers[0]);
    }
    int i = 0;
    for (Setup setup : cuts()) {
      CAPTURE(setup.shares.size());
      CAPTURE(setup.stages);
      setup.layer_guesses = 1 + i++;
      std::vector<Answer> answers;
      uint64_t guesses = 0;
      for (const GenerateRequest& request : requests) {
        Drafted drafted = run_drafting(folder, setup, {request});
        answers.push_back(std::move(drafted.answers[0]));
        guesses += drafted.counts.guesses;
      }
      const bool has_none = setup.stages > 1 && name == "deepseekv4-dspark";
      CHECK((has_none ? guesses == 0 : guesses > 100));
      check_same_answers(answers, serial);
    }
    // All at once, and as many guesses as pay: steps have prompts, guesses and neither.
    check_same_answers(run_drafting(folder, {.shares = {1, 1}}, requests).answers, serial);
    check_same_answers(run_drafting(folder, {.shares = {1, 1}, .stages = 2}, requests).answers,
                       serial);
  }
}

TEST_CASE("pages with a draft layer's entries are saved and go on from the disk") {
  const TemporaryFolder work, cache;
  const std::string folder = (work.path() / "planted").string();
  write_planted_drafts(kPlanted, true, folder);
  GenerateRequest request{.prompt = {}, .max_tokens = 70};
  for (int32_t i = 0; i < 200; ++i) request.prompt.push_back(1 + i * 7 % 150);
  const Answer serial = run_ranks(folder, {}, {request}).answers[0];
  REQUIRE(serial.tokens.size() == 70);
  Setup setup{.cache_folders = {cache.path().string()}};
  GenerateRequest stopped = request;
  stopped.stop_ids = {serial.tokens[50]};
  const Answer first = run_drafting(folder, setup, {stopped}).answers[0];
  CHECK(first.reason == FinishReason::kStop);
  for (const int stages : {1, 2}) {
    setup.shares = {1, 1};
    setup.stages = stages;
    const Drafted drafted = run_drafting(folder, setup, {request});
    CHECK(same_bits(drafted.answers[0], serial));
    CHECK(drafted.answers[0].cached_tokens >= 128);
    CHECK(drafted.counts.guesses > 0);
    CHECK(drafted.counts.right == drafted.counts.guesses);
  }
}

TEST_CASE("the layer's logits are reported only of the requests that want them") {
  const std::string folder = golden_folder("mtp-deepseekv3-bf16");
  const GenerateRequest wants = draft_request(read_golden(folder).prompt);
  GenerateRequest guesses{.prompt = {5, 6, 7, 8}, .max_tokens = 60};
  const Answer alone = run_drafting(folder, {}, {wants}).answers[0];
  for (const std::vector<double>& shares : {std::vector<double>{1}, std::vector<double>{2, 1}}) {
    const Drafted both =
        run_drafting(folder, {.shares = shares, .layer_guesses = 2}, {guesses, wants, guesses});
    CHECK(same_draft_bits(both.answers[1], alone));
    CHECK(both.answers[0].draft_logits.empty());
    const Drafted two =
        run_drafting(folder, {.shares = shares, .layer_guesses = 2}, {guesses, wants});
    CHECK(same_draft_bits(two.answers[1], alone));
    CHECK(two.counts.guesses > 0);
  }
}

TEST_CASE("a draft layer that is always right, and one that never is") {
  const TemporaryFolder work;
  for (const bool is_right : {true, false}) {
    CAPTURE(is_right);
    const std::string folder = (work.path() / (is_right ? "right" : "wrong")).string();
    write_planted_drafts(kPlanted, is_right, folder);
    const GenerateRequest request{
        .prompt = read_golden(golden_folder(kPlanted)).prompt, .max_tokens = 41, .draft_tokens = 8};
    GenerateRequest plain = request;
    plain.draft_tokens = 0;
    const Answer serial = run_ranks(folder, {}, {plain}).answers[0];
    REQUIRE(serial.tokens.size() == 41);
    for (Setup setup : cuts()) {
      CAPTURE(setup.stages);
      setup.layer_guesses = 4;
      const Drafted drafted = run_drafting(folder, setup, {request});
      CHECK(same_bits(drafted.answers[0], serial));
      // Five tokens a step after the first one, or one.
      CHECK(drafted.counts.steps == (is_right ? 8 : 39));
      CHECK(drafted.counts.right == (is_right ? 32 : 0));
      if (setup.shares.size() == 1 || setup.stages > 1) continue;
      // Each step: the order, the embeddings, two sums in each of three layers, the choice. Each
      // guess: the embeddings, two sums, the best token. The last step of a wrong layer guesses
      // nothing, but has its pass.
      CHECK(drafted.counts.exchanges == (is_right ? 9 * 9 + 32 * 4 : 41 * 9 + 150 * 4 + 3));
    }
    // Without a fixed number their number depends on what a step takes.
    GenerateRequest longer = request;
    longer.max_tokens = 400;
    for (const int stages : {1, 2}) {
      const std::vector<double> shares(static_cast<size_t>(stages), 1.0);
      const Drafted adaptive = run_drafting(folder, {.shares = shares, .stages = stages}, {longer});
      CHECK(adaptive.counts.right == (is_right ? adaptive.counts.guesses : 0));
      CHECK(adaptive.counts.guesses > 0);
    }
  }
}
