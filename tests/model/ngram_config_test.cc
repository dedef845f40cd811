#include <doctest/doctest.h>

#include <numeric>
#include <string>
#include <vector>

#include "json/json.h"
#include "model/config/config.h"
#include "model/load/stages.h"
#include "model/ngrams/ngram_config.h"
#include "model/shapes/known_shapes.h"
#include "support/config_refusals.h"
#include "support/golden.h"

using namespace lockstep;

namespace {

JsonObject flash_next() {
  return parse_json(find_known_shape("qwen3.8-flash-next")->config).value().as_object();
}

}  // namespace

TEST_CASE("Qwen3.8-Flash-Next mixes streams, chooses blocks and has n-grams in one layer") {
  const JsonObject sound = flash_next();
  const auto parsed = parse_config(dump_json(sound));
  REQUIRE_MESSAGE(parsed.ok(), parsed.error().message);
  const ModelConfig& config = parsed.value();
  CHECK((config.streams.count == 4 && config.streams.low_rank == 320));
  CHECK(config.streams.gates() == 4);
  CHECK((config.delta && config.delta->gates_by_sigmoid && config.delta->values_per_key() == 3));
  const LayerTraits &first = config.layer(0), &second = config.layer(1), &sparse = config.layer(3);
  CHECK((first.is_recurrent() && second.is_recurrent() && !sparse.is_recurrent()));
  CHECK((!first.adds_ngrams && second.adds_ngrams && !sparse.adds_ngrams));
  CHECK((second.has(Role::kNgramRows) && !first.has(Role::kNgramRows)));
  CHECK((sparse.has_index() && !first.has_index() && sparse.state.has_key_rows));
  CHECK((sparse.has(Role::kIndexQueryKey) && !first.has(Role::kIndexQueryKey)));
  CHECK((!sparse.has(Role::kAttentionNorm) && !sparse.has(Role::kFeedForwardNorm)));
  CHECK((sparse.state.index.input_dim() == 128 && sparse.state.index.are_rows()));
  CHECK((config.indexer.chosen_entries() == 512 && config.indexer.first_choosing() == 2051));
  CHECK((config.indexer.rope == 64 && config.pools == std::vector<int>{4}));
  ModelConfig with_draft = config;
  add_draft_layer(with_draft);
  CHECK((with_draft.layer(48).streams == 4 && with_draft.layer(48).has_index()));
  CHECK(!with_draft.layer(48).adds_ngrams);
  const std::vector<bool> joined = joined_layers(config);
  CHECK((joined[1] && !joined[0] && !joined[2]));  // n-grams stay in the first stage
}

TEST_CASE("the constants of n-grams are those that the published checkpoint stores") {
  const auto parsed = parse_config(dump_json(flash_next()));
  REQUIRE(parsed.ok());
  const NgramConfig& ngrams = *parsed.value().ngrams;
  CHECK((ngrams.layer == 1 && ngrams.heads == 16 && ngrams.row == 160 && ngrams.past() == 9));
  CHECK((ngrams.parts == 128 && ngrams.part_rows == 2500012));
  const NgramConstants constants = published_constants(ngrams, parsed.value().vocab_size);
  CHECK(constants.multipliers ==
        std::vector<int64_t>{23703573157769, 20109073645365, 8052911324071});
  CHECK((constants.rows.front() == 20000003 && constants.rows.back() == 20000171));
  CHECK(constants.offsets[1] == 20000003);
  CHECK(check_constants(constants, ngrams, parsed.value().vocab_size).ok());
}

TEST_CASE("constants that lead out of the table are refused") {
  const auto parsed = parse_config(dump_json(flash_next()));
  REQUIRE(parsed.ok());
  const NgramConfig& ngrams = *parsed.value().ngrams;
  const int vocabulary = parsed.value().vocab_size;
  const NgramConstants sound = published_constants(ngrams, vocabulary);
  const auto is_refused = [&](auto change) {
    NgramConstants changed = sound;
    change(changed);
    return !check_constants(changed, ngrams, vocabulary).ok();
  };
  CHECK(is_refused([](NgramConstants& c) { c.rows[3] = 0; }));
  CHECK(is_refused([](NgramConstants& c) { c.rows[3] = INT64_MAX; }));
  CHECK(is_refused([](NgramConstants& c) { c.offsets[0] = -1; }));
  CHECK(is_refused([](NgramConstants& c) { c.offsets[15] = INT64_MAX; }));
  CHECK(is_refused([](NgramConstants& c) { c.offsets[15] += 20'000'000; }));
  CHECK(is_refused([](NgramConstants& c) { c.multipliers[2] = -1; }));
  CHECK(is_refused([](NgramConstants& c) { c.multipliers[2] = INT64_MAX / 2; }));
}

TEST_CASE("the rows of tokens are those of the reference, also after the end of a text") {
  for (const char* name : {"qwen4exp-bf16", "qwen4exp-fp8"}) {
    CAPTURE(name);
    const std::string folder = golden_folder(name);
    const auto config = read_config(folder);
    REQUIRE_MESSAGE(config.ok(), config.error().message);
    const NgramConfig& ngrams = *config.value().ngrams;
    const NgramConstants constants = published_constants(ngrams, config.value().vocab_size);
    const Json file = json_of_file(folder + "/golden.json");
    const Json& expected = *find(file, "ngram");
    const std::vector<int32_t> prompt = ints_of(*find(file, "prompt"));
    const auto rows_at = [&](size_t position) {
      std::vector<int32_t> before;
      for (size_t back = 1; back < static_cast<size_t>(ngrams.size); ++back) {
        before.push_back(back <= position ? prompt[position - back] : kNoToken);
      }
      std::vector<int32_t> rows;
      append_rows(ngrams, constants, prompt[position], before.data(), rows);
      return rows;
    };
    CHECK(rows_at(0) == ints_of(*find(expected, "rows_of_first_token")));
    CHECK(rows_at(prompt.size() - 1) == ints_of(*find(expected, "rows_of_last_prompt_token")));
    const auto end = std::find(prompt.begin(), prompt.end(), ngrams.end_token);
    REQUIRE(end != prompt.end());
    CHECK(rows_at(static_cast<size_t>(end - prompt.begin()) + 1) ==
          ints_of(*find(expected, "rows_after_eos")));
  }
}

TEST_CASE("what is wrong with n-grams, mixed streams and blocks is told by its key") {
  const Refusal refusals[] = {
      {"ple_layer_ids", nullptr, "\"ple_layer_ids\" must be a list of one layer"},
      {"ple_layer_ids", JsonArray{2, 6}, "\"ple_layer_ids\" must be a list of one layer"},
      {"ple_layer_ids", JsonArray{0}, "names a layer that does not exist"},
      {"ple_layer_ids", JsonArray{49}, "names a layer that does not exist"},
      {"ngram_size", 1, "\"ngram_size\" must be at least 2"},
      {"ngram_size", 9, "\"ngram_size\" is 9"},
      {"heads_per_ngram", 40, "80 heads of n-grams"},
      {"ple_embed_dim", 2561, "16 heads of n-grams, \"ple_embed_dim\" 2561"},
      {"ple_embed_dim", 1 << 17, "\"ple_embed_dim\" is 131072"},
      {"hidden_size", 1 << 18, "9 past inputs of 1048576 columns of n-grams"},
      {"ple_conv_kernel_size", 9, "\"ple_conv_kernel_size\" is 9"},
      {"split_ngram_parts", 7, "rows of n-grams in 7 parts are not supported"},
      {"split_ngram_parts", 4096, "\"split_ngram_parts\" is 4096"},
      {"ngram_vocab_size_base", nullptr, "\"ngram_vocab_size_base\" is missing"},
      {"ngram_vocab_size_base", int64_t{1} << 40, "\"ngram_vocab_size_base\""},
      {"eos_token_id", nullptr, "\"eos_token_id\" must be a token"},
      {"eos_token_id", 248320, "\"eos_token_id\" must be a token"},
      {"hc_count", 1, "\"hc_count\": 1 is not supported"},
      {"hc_lowrank", nullptr, "\"hc_lowrank\" is missing"},
      {"indexer_compress_ratio", 1, "only divisors of 64 from 2 on are supported"},
      {"indexer_compress_ratio", 6, "only divisors of 64 from 2 on are supported"},
      {"indexer_budget", 3, "it must be at least \"indexer_compress_ratio\", 4"},
      {"indexer_head_dim", 32, "\"indexer_head_dim\" is 32, but 64 dimensions turn"},
      {"indexer_kv_heads", 2, "\"indexer_kv_heads\" is not 1"},
      {"mtp_use_dedicated_embeddings", true, "\"mtp_use_dedicated_embeddings\": true"},
      {"mtp", JsonObject{{"rope_theta", 5000}}, "\"rope_theta\" is 5000 in \"mtp\""},
      {"output_gate_type", "tanh", "\"output_gate_type\": \"tanh\" is not supported"}};
  check_refusals(flash_next(), refusals);
}
