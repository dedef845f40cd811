#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "json/json.h"
#include "model/config/config.h"
#include "model/shapes/known_shapes.h"
#include "support/config_refusals.h"

using namespace lockstep;

TEST_CASE("DeepSeek V4's layers have a window, entries of two lengths, and given experts") {
  const JsonObject sound =
      parse_json(find_known_shape("deepseek-v4-flash")->config).value().as_object();
  const auto parsed = parse_config(dump_json(sound));
  REQUIRE_MESSAGE(parsed.ok(), parsed.error().message);
  const ModelConfig& config = parsed.value();
  REQUIRE(config.compressed.has_value());
  CHECK(config.pools == std::vector<int>{4, 128});
  CHECK((config.compressed->groups == 8 && config.compressed->group_rank == 1024));
  const LayerTraits &plain = config.layer(1), &choosing = config.layer(2), &all = config.layer(3);
  CHECK((plain.window == 128 && choosing.window == 128 && all.window == 128));
  CHECK((plain.pool == 0 && choosing.pool == 4 && all.pool == 128));
  CHECK((plain.has_other_rope && !choosing.has_other_rope && !all.has_other_rope));
  CHECK((!plain.has(Role::kEntryGates) && all.has(Role::kEntryGates)));
  CHECK((choosing.has_index() && !plain.has_index() && !all.has_index()));
  CHECK((choosing.has(Role::kIndexEntryNorm) && !all.has(Role::kIndexEntryNorm)));
  CHECK((choosing.state.entries.input_dim() == 2048 && all.state.entries.input_dim() == 1024));
  CHECK((choosing.state.entries.slots() == 16 && all.state.entries.slots() == 1));
  CHECK((choosing.has_given_experts && !all.has_given_experts && all.has(Role::kRouterBias)));
  CHECK((choosing.has(Role::kRouterTable) && !choosing.has(Role::kRouterBias)));
  CHECK((config.indexer.chosen_entries() == 512 && config.indexer.first_choosing() == 2051));
  CHECK((config.rope_theta == 160000 && config.compressed->window_theta == 10000));
  CHECK((config.yarn_rope && config.yarn_rope->attention_factor == 1));
  CHECK((config.rotary_dims == 64 && config.attention_scale == 1 / std::sqrt(512.0f)));
  const auto ratios = [&](size_t layer, int ratio) {
    JsonArray list = sound.at("compress_ratios").as_array();
    list[layer] = ratio;
    return list;
  };
  const Refusal refusals[] = {
      {"compress_ratios", nullptr, "\"compress_ratios\" must be a list of 43 layers"},
      {"compress_ratios", JsonArray{0, 4}, "\"compress_ratios\" must be a list of 43 layers"},
      {"compress_ratios", ratios(2, -4), "numbers that are not negative"},
      {"compress_ratios", ratios(2, 1), "has 1, only divisors and multiples of 64"},
      {"compress_ratios", ratios(2, 3), "has 3, only divisors and multiples of 64"},
      {"compress_ratios", ratios(2, 96), "has 96, only divisors and multiples of 64"},
      {"compress_ratios", ratios(2, 2048), "has 2048, only divisors and multiples of 64 up to"},
      {"compress_ratios", ratios(43, 4), "a layer that predicts further tokens is not 0"},
      {"num_key_value_heads", 2, "\"num_key_value_heads\" is 2, only 1 is supported"},
      {"o_groups", 5, "64 heads in 5 groups of rank 1024 cannot be cut evenly"},
      {"o_groups", 128, "\"o_groups\" is 128"},
      {"o_lora_rank", 1 << 22, "8 groups of 4194304 elements are too large"},
      {"qk_rope_head_dim", 1024, "\"qk_rope_head_dim\" is 1024, it must be even and at most 512"},
      {"q_lora_rank", nullptr, "\"q_lora_rank\" is missing"},
      {"sliding_window", nullptr, "\"sliding_window\" is missing"},
      {"compress_rope_theta", nullptr, "\"compress_rope_theta\""},
      {"num_hash_layers", 44, "\"num_hash_layers\" is 44, there are 43 layers"},
      {"index_head_dim", 32, "\"index_head_dim\" is 32, it must be at least"},
      {"index_topk", nullptr, "\"index_topk\" is missing"},
      {"scoring_func", "sigmoid", "\"scoring_func\": \"sigmoid\" is not supported"},
      {"head_dim", 1024, "\"head_dim\" is 1024"},
      {"rotary_dim", 32, "contradicts \"qk_rope_head_dim\", which is 64"},
      {"partial_rotary_factor", 0.5, "contradicts \"qk_rope_head_dim\", which is 64"}};
  check_refusals(sound, refusals);
}

TEST_CASE("DeepSeek V4's turning part of a head may be said twice, its pools are of few lengths") {
  const JsonObject sound =
      parse_json(find_known_shape("deepseek-v4-flash")->config).value().as_object();
  JsonObject part = sound;  // of the head, as Hugging Face transformers writes it
  part["partial_rotary_factor"] = 0.125;
  const auto same = parse_config(dump_json(part));
  REQUIRE_MESSAGE(same.ok(), same.error().message);
  CHECK((same.value().rotary_dims == 64 && same.value().latent.rows() == 0));
  JsonObject many = sound;
  many["compress_ratios"].as_array()[3] = 2;
  for (const int pool : {8, 16, 32}) {
    many["compress_ratios"].as_array()[static_cast<size_t>(pool)] = pool;
  }
  const auto refused = parse_config(dump_json(many));
  REQUIRE(!refused.ok());
  CHECK(refused.error().message.find("6 different \"compress_ratios\"") != std::string::npos);
}

TEST_CASE("draft layers that guess a block are told by its size, and left out with the reason") {
  JsonObject sound = parse_json(find_known_shape("deepseek-v4-flash")->config).value().as_object();
  JsonArray ratios = sound.at("compress_ratios").as_array();
  ratios.resize(43 + 3, 0);
  sound["compress_ratios"] = ratios;
  sound["dspark_block_size"] = 5;
  sound["dspark_noise_token_id"] = 128799;
  sound["dspark_target_layer_ids"] = JsonArray{40, 41, 42};
  sound["dspark_markov_rank"] = 256;
  const auto parsed = parse_config(dump_json(sound));
  REQUIRE_MESSAGE(parsed.ok(), parsed.error().message);
  ModelConfig config = parsed.value();
  REQUIRE(config.draft_block.has_value());
  const DraftBlock& block = *config.draft_block;
  CHECK((block.size == 5 && block.noise == 128799 && block.rank == 256 && block.layers == 3));
  CHECK(block.taps == std::vector<int>{40, 41, 42});
  CHECK((!config.guesses_blocks() && config.draft_inputs() == 3));
  add_draft_layer(config);
  CHECK((config.guesses_blocks() && config.end_with_draft(43) == 46));
  for (int layer = 43; layer < 46; ++layer) {
    const LayerTraits& draft = config.layer(layer);
    CHECK((draft.streams == 4 && draft.pool == 0 && draft.window == 128 && draft.has_experts));
    CHECK((draft.has(Role::kRouterBias) && draft.has(Role::kAttentionStreams)));
  }
  JsonObject older = sound;
  older.erase("dspark_block_size");
  CHECK(!parse_config(dump_json(older)).value().draft_block.has_value());
  JsonArray many = ratios;
  many.resize(43 + 9, 0);
  const Refusal refusals[] = {
      {"compress_ratios", JsonArray(ratios.begin(), ratios.end() - 3), "there are 0"},
      {"compress_ratios", many, "1 to 8 layers after the model's in \"compress_ratios\""},
      {"dspark_block_size", 0, "\"dspark_block_size\" is 0"},
      {"dspark_block_size", 17, "\"dspark_block_size\" is 17"},
      {"dspark_markov_rank", nullptr, "\"dspark_markov_rank\""},
      {"dspark_markov_rank", -1, "\"dspark_markov_rank\" is -1"},
      {"dspark_noise_token_id", nullptr, "is not in the vocabulary of 129280 tokens"},
      {"dspark_noise_token_id", 129280, "is not in the vocabulary of 129280 tokens"},
      {"dspark_target_layer_ids", nullptr, "must be a list of layers of the model"},
      {"dspark_target_layer_ids", JsonArray{}, "must be a list of layers of the model"},
      {"dspark_target_layer_ids", JsonArray{1, 43}, "names a layer that is not one of 43"},
      {"dspark_target_layer_ids", JsonArray{1, "2"}, "names a layer that is not one of 43"},
  };
  for (const Refusal& refusal : refusals) {  // the model can do without
    CAPTURE(refusal.sentence);
    JsonObject file = sound;
    file[refusal.key] = refusal.value;
    const auto without = parse_config(dump_json(file));
    REQUIRE_MESSAGE(without.ok(), without.error().message);
    CHECK_FALSE(without.value().draft_block.has_value());
    CHECK(without.value().draft_problem.find(refusal.sentence) != std::string::npos);
  }
}
