#include "model/config/config.h"

#include <doctest/doctest.h>

#include <string>

#include "json/json.h"
#include "kernels/math.h"
#include "model/forward/rope.h"
#include "model/load/model_summary.h"
#include "model/shapes/known_shapes.h"
#include "support/config_refusals.h"

using namespace lockstep;

namespace {

JsonObject sound() {
  return {{"architectures", JsonArray{"LlamaForCausalLM"}},
          {"vocab_size", 320},
          {"hidden_size", 128},
          {"intermediate_size", 256},
          {"num_hidden_layers", 2},
          {"num_attention_heads", 8},
          {"num_key_value_heads", 4},
          {"rms_norm_eps", 1e-5},
          {"rope_theta", 500000.0}};
}

}  // namespace

TEST_CASE("a config gives sizes, with Hugging Face's defaults") {
  const auto config = parse_config(dump_json(sound()));
  REQUIRE(config.ok());
  CHECK(config.value().head_dim == 16);
  CHECK(config.value().heads_per_kv() == 2);
  CHECK(!config.value().tied_embeddings);
  CHECK(!config.value().llama3_rope);
}

TEST_CASE("rope parameters are read in the old and the new form") {
  JsonObject old_form = sound(), new_form = sound();
  const JsonObject scaling{{"rope_type", "llama3"},
                           {"factor", 8.0},
                           {"low_freq_factor", 1.0},
                           {"high_freq_factor", 4.0},
                           {"original_max_position_embeddings", 64}};
  old_form["rope_scaling"] = scaling;
  JsonObject parameters = scaling;
  parameters["rope_theta"] = 500000.0;
  new_form.erase("rope_theta");
  new_form["rope_parameters"] = parameters;
  const auto a = parse_config(dump_json(old_form)), b = parse_config(dump_json(new_form));
  REQUIRE(a.ok());
  REQUIRE(b.ok());
  CHECK(rope_frequencies(a.value()) == rope_frequencies(b.value()));
}

TEST_CASE("rope scaling slows low frequencies and keeps high ones") {
  JsonObject file = sound();
  const auto plain = parse_config(dump_json(file));
  file["rope_scaling"] = JsonObject{{"rope_type", "llama3"},
                                    {"factor", 8.0},
                                    {"low_freq_factor", 1.0},
                                    {"high_freq_factor", 4.0},
                                    {"original_max_position_embeddings", 64}};
  const auto scaled = parse_config(dump_json(file));
  REQUIRE(scaled.ok());
  const auto before = rope_frequencies(plain.value()), after = rope_frequencies(scaled.value());
  CHECK(before[0] == 1.0);
  CHECK(after[0] == before[0]);
  CHECK(after.back() == doctest::Approx(before.back() / 8).epsilon(1e-14));
}

TEST_CASE("the norms of DeepSeek's latents have an epsilon of their own, GLM's have the model's") {
  JsonObject file = parse_json(find_known_shape("kimi-k2-thinking")->config).value().as_object();
  const auto deepseek = parse_config(dump_json(file));
  REQUIRE(deepseek.ok());
  CHECK(deepseek.value().norm_epsilon == 1e-5f);
  CHECK(deepseek.value().latent.norm_epsilon == 1e-6f);
  file["architectures"] = JsonArray{"Glm4MoeLiteForCausalLM"};
  const auto glm = parse_config(dump_json(file));
  REQUIRE(glm.ok());
  CHECK(glm.value().latent.norm_epsilon == 1e-5f);
}

TEST_CASE("the index of sparse attention, and layers that share one") {
  const JsonObject sound = parse_json(find_known_shape("glm-5")->config).value().as_object();
  const auto config = parse_config(dump_json(sound));
  REQUIRE(config.ok());
  CHECK((config.value().indexer.heads == 32 && config.value().indexer.head_dim == 128));
  CHECK((config.value().indexer.chosen == 2048 && config.value().indexer.rotates_pairs));
  CHECK(config.value().layer(77).state.index.dim == 128);
  CHECK(config.value().layer(77).has(Role::kIndexQuery));
  const auto halves = parse_config(find_known_shape("deepseek-v3.2")->config);
  REQUIRE(halves.ok());
  CHECK(!halves.value().indexer.rotates_pairs);
  JsonObject sharing = sound;
  sharing["num_hidden_layers"] = 3;
  sharing["indexer_types"] = JsonArray{"full", "shared", "full"};
  sharing["index_topk_freq"] = 2;
  sharing["mlp_layer_types"] = JsonArray{"dense", "sparse", "dense"};
  const auto shared = parse_config(dump_json(sharing));
  REQUIRE(shared.ok());
  const LayerTraits& second = shared.value().layer(1);
  CHECK((second.shares_choice && !second.has_index() && !second.has(Role::kIndexKey)));
  CHECK((shared.value().layer(2).has_index() && !shared.value().layer(2).shares_choice));
  CHECK((second.has_experts && !shared.value().layer(2).has_experts));
  const Refusal refusals[] = {
      {"index_topk", nullptr, "\"index_topk\""},
      {"index_topk", 0, "\"index_topk\" is 0"},
      {"index_n_heads", -1, "\"index_n_heads\" is -1"},
      {"index_head_dim", 32, "\"index_head_dim\" is 32, it must be at least \"qk_rope_head_dim\""},
      {"index_n_heads", 1 << 20, "1048576 indexer heads of 128 elements are too large"},
      {"q_lora_rank", nullptr, "an indexer without \"q_lora_rank\" is not supported"},
      {"kv_lora_rank", 1024, "latents of 1088 elements with an indexer are not supported"},
      {"rope_interleave", false, "\"rope_interleave\": false is not supported"},
      {"index_topk_freq", 4, "\"index_topk_freq\" is 4 without \"indexer_types\""},
      {"index_topk_pattern", "FFS", "\"index_topk_pattern\" without \"indexer_types\""},
      {"indexer_types", JsonArray{"full"}, "\"indexer_types\" must name each layer's type"},
      {"indexer_types", JsonArray{"shared", "full", "full"}, "begins with \"shared\""},
      {"indexer_types", JsonArray{"full", "half", "full"}, "the indexer type \"half\" is unknown"},
      {"mlp_layer_types", JsonArray{"dense"}, "\"mlp_layer_types\" must name each layer's type"},
      {"mlp_layer_types", JsonArray{"dense", "sparse", "other"}, "the layer type \"other\""}};
  JsonObject three = sound;
  three["num_hidden_layers"] = 3;
  check_refusals(three, refusals);
}

TEST_CASE("MiniMax M2 gives rotated dimensions and norms over all heads, in keys of its own") {
  const JsonObject sound = parse_json(find_known_shape("minimax-m2")->config).value().as_object();
  const auto config = parse_config(dump_json(sound));
  REQUIRE(config.ok());
  CHECK(config.value().rotary_dims == 64);
  CHECK(config.value().experts.count == 256);
  CHECK(config.value().experts.ffn == 1536);
  CHECK(config.value().experts.normalises);
  CHECK((config.value().layer(0).joins_head_norms && config.value().layer(61).has_experts));
  JsonObject plain = sound;
  plain["use_qk_norm"] = false;
  CHECK(!parse_config(dump_json(plain)).value().layer(0).joins_head_norms);
  const Refusal refusals[] = {
      {"rotary_dim", 63, "\"rotary_dim\" is 63, it must be even and at most 128"},
      {"rotary_dim", 130, "\"rotary_dim\" is 130"},
      {"rotary_dim", 0, "\"rotary_dim\" is 0"},
      {"scoring_func", "softmax", "\"scoring_func\": \"softmax\" is not supported, only sigmoid"},
      {"use_routing_bias", false, "\"use_routing_bias\": false is not supported"},
      {"shared_intermediate_size", 512, "\"shared_intermediate_size\" is 512"},
      {"qk_norm_type", "per_head", "\"per_head\" is not supported, only per_layer is"},
      {"attn_type_list", JsonArray{1, 0}, "\"attn_type_list\" has the type 0"},
      {"attn_type_list", 1, "\"attn_type_list\" must be an array"},
      {"num_mtp_modules", -1, "\"num_mtp_modules\" is -1"}};
  check_refusals(sound, refusals);
}

TEST_CASE("Qwen 3.5's recurrent layers are those of layer_types, or all but every fourth") {
  const JsonObject sound = parse_json(find_known_shape("qwen3.5-27b")->config).value().as_object();
  const auto parsed = parse_config(dump_json(sound));
  REQUIRE(parsed.ok());
  const ModelConfig& config = parsed.value();
  for (int layer = 0; layer < 64; ++layer) {
    CHECK(config.layer(layer).is_recurrent() == (layer % 4 != 3));
    CHECK((config.layer(layer).state.heads == 0) == config.layer(layer).is_recurrent());
    CHECK(config.layer(layer).gates_output == !config.layer(layer).is_recurrent());
  }
  CHECK(&config.attention_layer() == &config.layer(3));
  CHECK(config.rotary_dims == 64);
  REQUIRE(config.delta.has_value());
  CHECK((config.delta->key_heads == 16 && config.delta->value_heads == 48));
  CHECK(config.delta->channels() == 2 * 16 * 128 + 48 * 128);
  CHECK(config.layer(0).has(Role::kDeltaInput));
  CHECK_FALSE(config.layer(0).has(Role::kDeltaGroupedInput));
  const ModelConfig grouped = parse_config(find_known_shape("qwen3-next-80b-a3b")->config).value();
  CHECK(grouped.layer(0).has(Role::kDeltaGroupedInput));
  JsonObject two = sound;
  two["num_hidden_layers"] = 2;
  two["layer_types"] = JsonArray{"full_attention", "linear_attention"};
  const ModelConfig other = parse_config(dump_json(two)).value();
  CHECK((!other.layer(0).is_recurrent() && other.layer(1).is_recurrent()));
  CHECK_FALSE(other.delta->gates_by_sigmoid);
  two["output_gate_type"] = "sigmoid";
  CHECK(parse_config(dump_json(two)).value().delta->gates_by_sigmoid);
  const Refusal refusals[] = {
      {"attn_output_gate", false, "\"attn_output_gate\": false is not supported"},
      {"linear_num_key_heads", 5, "48 value heads cannot share 5 key heads evenly"},
      {"linear_num_value_heads", 128, "\"linear_num_value_heads\" is 128"},
      {"linear_key_head_dim", 0, "\"linear_key_head_dim\" is 0"},
      {"linear_conv_kernel_dim", 9, "\"linear_conv_kernel_dim\" is 9"},
      {"linear_conv_kernel_dim", nullptr, "\"linear_conv_kernel_dim\" is missing"},
      {"full_attention_interval", 65, "no layer has full attention"},
      {"output_gate_type", "tanh", "\"output_gate_type\": \"tanh\" is not supported"},
      {"layer_types", JsonArray{"linear_attention"}, "must name each layer's type"}};
  check_refusals(sound, refusals);
  two["layer_types"] = JsonArray{"full_attention", "sliding_attention"};
  CHECK(parse_config(dump_json(two)).error().message.find("\"sliding_attention\" is unknown") !=
        std::string::npos);
}

TEST_CASE("Kimi Linear lists its recurrent layers from 1 on, and rotates nothing") {
  const JsonObject sound =
      parse_json(find_known_shape("kimi-linear-48b")->config).value().as_object();
  const auto parsed = parse_config(dump_json(sound));
  REQUIRE_MESSAGE(parsed.ok(), parsed.error().message);
  const ModelConfig& config = parsed.value();
  CHECK((config.layer(0).is_recurrent() && !config.layer(3).is_recurrent()));
  CHECK((!config.layer(26).is_recurrent() && config.layer(26).is_latent()));
  REQUIRE(config.delta.has_value());
  CHECK((config.delta->decays() == 128 && config.delta->low_rank == 128));
  CHECK(config.positions_max == 1048576);
  CHECK((config.experts.chosen == 8 && config.experts.shared_ffn == 1024));
  const std::vector<double> turns = rope_frequencies(config);
  CHECK(std::all_of(turns.begin(), turns.end(), [](double turn) { return turn == 0; }));
  const auto refusal = [&](const char* key, const Json& value) {
    JsonObject file = sound;
    file[key] = value;
    const auto refused = parse_config(dump_json(file));
    REQUIRE(!refused.ok());
    return refused.error().message;
  };
  const auto layers = [&](JsonArray recurrent, JsonArray full) {
    JsonObject linear = sound.at("linear_attn_config").as_object();
    linear["kda_layers"] = std::move(recurrent);
    linear["full_attn_layers"] = std::move(full);
    return refusal("linear_attn_config", linear);
  };
  const auto says = [](const std::string& text, const char* part) {
    CHECK_MESSAGE(text.find(part) != std::string::npos, text);
  };
  says(layers({0}, {1}), "\"kda_layers\" names a layer that does not exist");
  says(layers({1}, {28}), "\"full_attn_layers\" names a layer that does not exist");
  says(layers({1, 2}, {2, 3}), "must name each layer once");
  says(refusal("linear_attn_config", nullptr), "\"linear_attn_config\" is missing");
  says(refusal("mla_use_nope", false), "\"mla_use_nope\": false is not supported");
  says(refusal("moe_router_activation_func", "softmax"), "only sigmoid is");
}

TEST_CASE("GLM-5.3 has several residual streams, pools of its index and a least decay") {
  const JsonObject sound =
      parse_json(find_known_shape("glm-5.3-flash")->config).value().as_object();
  const auto parsed = parse_config(dump_json(sound));
  REQUIRE_MESSAGE(parsed.ok(), parsed.error().message);
  const ModelConfig& config = parsed.value();
  CHECK((config.streams.count == 4 && config.streams.rounds == 20));
  CHECK((config.passed() == 4 * 4096 && config.embedded() == 4096));
  CHECK((config.layer(2).is_recurrent() && config.layer(3).is_latent()));
  CHECK((config.layer(43).is_latent() && config.layer(44).is_recurrent()));
  CHECK((!config.layer(2).has_experts && config.layer(3).has_experts));
  CHECK((config.layer(3).streams == 4 && config.layer(3).has(Role::kFeedForwardStreams)));
  CHECK((config.layer(3).has_index() && !config.layer(2).has_index()));
  CHECK((config.indexer.pool == 4 && config.indexer.first_choosing() == 2051));
  CHECK((config.latent.rope == 0 && config.head_dim == 256));
  CHECK((config.delta->least_decay == -5.0f && config.delta->decays() == 128));
  CHECK(config.gate_limit == 10.0f);
  ModelConfig with_draft = config;
  add_draft_layer(with_draft);
  CHECK((with_draft.layer(45).streams == 1 && with_draft.layer(45).has_index()));
  CHECK(!with_draft.layer(45).has(Role::kAttentionStreams));
  JsonObject typed = sound;
  typed["num_hidden_layers"] = 2;
  typed["layer_types"] = JsonArray{"linear_attention", "deepseek_sparse_attention"};
  const auto two = parse_config(dump_json(typed));
  REQUIRE_MESSAGE(two.ok(), two.error().message);
  CHECK((two.value().layer(0).is_recurrent() && two.value().layer(1).is_latent()));
  const Refusal refusals[] = {
      {"hc_mult", nullptr, "\"hc_mult\""},
      {"hc_mult", 9, "\"hc_mult\" is 9"},
      {"hc_mult", 1, "\"hc_mult\": 1 is not supported"},
      {"index_kpool", nullptr, "\"index_kpool\" is missing"},
      {"hc_mult", 0, "\"hc_mult\" is 0"},
      {"hc_sinkhorn_iters", 1000, "\"hc_sinkhorn_iters\" is 1000"},
      {"hc_eps", 0, "\"hc_eps\""},
      {"mhc", false, "\"mhc\": false is not supported"},
      {"hidden_size", 1 << 23, "4 residual streams of 8388608 columns are too large"},
      {"swiglu_limit", nullptr, "\"swiglu_limit\""},
      {"index_kpool", 3, "\"index_kpool\" is 3, only divisors of 64 are supported"},
      {"index_kpool", 128, "\"index_kpool\" is 128"},
      {"index_topk", 3, "\"index_topk\" is 3, it must be at least \"index_kpool\", 4"},
      {"index_kpool_compress", false, "\"index_kpool_compress\": false is not supported"},
      {"index_kpool_always_select_tail", false, "\"index_kpool_always_select_tail\": false"},
      {"mla_use_nope", false, "\"mla_use_nope\": false is not supported"},
      {"qk_rope_head_dim", -2, "\"qk_rope_head_dim\" is -2"},
      {"linear_attn_config", nullptr, "\"linear_attn_config\" is missing"}};
  check_refusals(sound, refusals);
  JsonObject wrong = sound;
  JsonObject linear = sound.at("linear_attn_config").as_object();
  linear["gate_lower_bound"] = 1.0;
  wrong["linear_attn_config"] = linear;
  const auto refused = parse_config(dump_json(wrong));
  REQUIRE(!refused.ok());
  CHECK(refused.error().message.find("\"gate_lower_bound\" is 1") != std::string::npos);
}

TEST_CASE("Gemma 4's layers without a window have sizes and rotary angles of their own") {
  const JsonObject sound = parse_json(find_known_shape("gemma-4-31b")->config).value().as_object();
  const auto parsed = parse_config(dump_json(sound));
  REQUIRE(parsed.ok());
  const ModelConfig& config = parsed.value();
  CHECK(config.attention_scale == 1.0f);
  CHECK(config.logit_cap == 30.0f);
  CHECK(config.rope_theta == 10000);
  CHECK(config.rotary_dims == 256);
  REQUIRE(config.full.has_value());
  CHECK(config.full->turning_pairs == 64);
  const LayerTraits &windowed = config.layer(4), &full = config.layer(5);
  CHECK((windowed.window == 1024 && windowed.head_dim == 256 && windowed.state.heads == 16));
  CHECK((full.window == 0 && full.head_dim == 512 && full.state.heads == 4));
  CHECK((windowed.has(Role::kValue) && !full.has(Role::kValue)));
  CHECK((!windowed.has_other_rope && full.has_other_rope));
  const std::vector<double> turns = other_rope_frequencies(config);
  REQUIRE(turns.size() == 256);
  CHECK((turns[0] == 1 && turns[63] > 0 && turns[64] == 0));
  const Json ropes = sound.at("rope_parameters");
  JsonObject yarn = ropes.as_object();
  yarn["full_attention"] = JsonObject{{"rope_theta", 1000000.0}, {"rope_type", "yarn"}};
  JsonObject partial = ropes.as_object();
  partial["sliding_attention"] =
      JsonObject{{"rope_theta", 10000.0}, {"partial_rotary_factor", 0.5}};
  const Refusal refusals[] = {
      {"enable_moe_block", true, "\"num_experts\" is missing"},
      {"hidden_size_per_layer_input", -1, "\"hidden_size_per_layer_input\" is -1"},
      {"hidden_size_per_layer_input", 1 << 24, "\"hidden_size_per_layer_input\" is 16777216"},
      {"num_kv_shared_layers", 60, "\"num_kv_shared_layers\" is 60, there are 60 layers"},
      {"num_kv_shared_layers", 55, "no layer before these has keys and values for layer 5"},
      {"hidden_activation", "silu", "\"silu\" is not supported, only gelu_pytorch_tanh is"},
      {"global_head_dim", 1024, "\"global_head_dim\" is 1024"},
      {"global_head_dim", 511, "\"global_head_dim\" is 511, it must be even"},
      {"num_global_key_value_heads", 3, "3 key/value heads of layers without a window"},
      {"final_logit_softcapping", -1.0, "\"final_logit_softcapping\" is -1"},
      {"layer_types", nullptr, "\"layer_types\" is missing"},
      {"rope_parameters", nullptr, "\"rope_parameters\" has no \"sliding_attention\""},
      {"rope_parameters", yarn, "the rope type \"yarn\" of \"full_attention\""},
      {"rope_parameters", partial, "\"partial_rotary_factor\" is 0.5 in \"sliding_attention\""}};
  check_refusals(sound, refusals);
}

TEST_CASE("Gemma 4's experts come in addition to a dense part, which is cut like them") {
  JsonObject file = parse_json(find_known_shape("gemma-4-26b-a4b")->config).value().as_object();
  const auto parsed = parse_config(dump_json(file));
  REQUIRE(parsed.ok());
  const ExpertsConfig& experts = parsed.value().experts;
  CHECK((experts.count == 128 && experts.chosen == 8 && experts.ffn == 704));
  CHECK((experts.shared_ffn == 2112 && experts.normalises && experts.factor == 1));
  for (const LayerTraits& layer : parsed.value().traits) {
    CHECK((layer.has_experts && layer.has(Role::kDown) && layer.feed_forward_sums() == 2));
  }
  file["enable_moe_block"] = false;
  const auto dense = parse_config(dump_json(file));
  REQUIRE(dense.ok());
  CHECK(dense.value().experts.count == 0);
  CHECK((!dense.value().layer(0).has_experts && dense.value().layer(0).feed_forward_sums() == 1));
}

TEST_CASE("Gemma 4's small models have inputs of layers, and keys and values of earlier layers") {
  JsonObject file = parse_json(find_known_shape("gemma-4-e2b")->config).value().as_object();
  const auto parsed = parse_config(dump_json(file));
  REQUIRE(parsed.ok());
  const ModelConfig& config = parsed.value();
  CHECK((config.layer_input == 256 && config.passed() == 1536 + 35 * 256));
  CHECK((config.layer(14).has_state() && config.layer(14).has(Role::kKey)));
  CHECK((config.layer(15).state_layer == 13 && config.layer(34).state_layer == 14));
  for (const Role role : {Role::kKey, Role::kValue, Role::kKeyNorm}) {
    CHECK((!config.layer(15).has(role) && !config.layer(34).has(role)));
  }
  CHECK((config.layer(14).ffn == 6144 && config.layer(15).ffn == 12288));
  const uint64_t bytes = state_bytes(config, KvKind::kF16, 64);
  file["num_kv_shared_layers"] = 0;
  CHECK(bytes < state_bytes(parse_config(dump_json(file)).value(), KvKind::kF16, 64) / 2);
  file["vocab_size_per_layer_input"] = 262400;
  const auto refused = parse_config(dump_json(file));
  REQUIRE(!refused.ok());
  CHECK(refused.error().message.find("\"vocab_size_per_layer_input\" is 262400") == 0);
}

TEST_CASE("gpt-oss uses its own keys for experts and has a window on every other layer") {
  JsonObject file = sound();
  file["architectures"] = JsonArray{"GptOssForCausalLM"};
  file["num_local_experts"] = 32;
  file["num_experts_per_tok"] = 4;
  file["swiglu_limit"] = 5.0;
  file["attention_bias"] = true;
  file["sliding_window"] = 128;
  file["layer_types"] = JsonArray{"sliding_attention", "full_attention"};
  const auto config = parse_config(dump_json(file));
  REQUIRE(config.ok());
  CHECK(config.value().experts.count == 32);
  CHECK(config.value().experts.chosen == 4);
  CHECK(config.value().experts.ffn == 256);  // intermediate_size
  CHECK(config.value().gate_limit == 5.0f);
  CHECK(config.value().qkv_bias);
  const std::vector<LayerTraits>& layers = config.value().traits;
  REQUIRE(layers.size() == 2);
  CHECK(layers[0].window == 128);
  CHECK(layers[1].window == 0);
  CHECK((layers[0].has_experts && layers[1].has_experts));
  file.erase("swiglu_limit");
  file["num_experts_per_tok"] = 33;
  const auto too_many = parse_config(dump_json(file));
  REQUIRE(!too_many.ok());
  CHECK(too_many.error().message.find("33 experts of 32") != std::string::npos);
  file["num_experts_per_tok"] = 4;
  file["num_local_experts"] = 2048;
  file["num_hidden_layers"] = 200;
  const auto huge = parse_config(dump_json(file));
  REQUIRE(!huge.ok());
  CHECK(huge.error().message.find("2048 experts in each of 200 layers") != std::string::npos);
}

TEST_CASE("the number of latent attention heads, which have matrices each, is limited") {
  const Json known = parse_json(find_known_shape("deepseek-v3")->config).value();
  JsonObject file = known.get_object();
  for (const int heads : {kLatentHeadsMax, kLatentHeadsMax + 1}) {
    file["num_attention_heads"] = file["num_key_value_heads"] = heads;
    const auto config = parse_config(dump_json(file));
    CHECK(config.ok() == (heads <= kLatentHeadsMax));
    if (config.ok()) continue;
    CHECK(config.error().code == ErrorCode::kUnsupported);
    CHECK(config.error().message.find("257 heads of latent attention") == 0);
  }
}

TEST_CASE("an architecture that is not named is found by its model type") {
  for (const Architecture* architecture : known_architectures()) {
    CHECK(find_architecture(architecture->name) == architecture);
    CHECK(!architecture->model_types[0].empty());
    for (const std::string_view type : architecture->model_types) {
      if (!type.empty()) CHECK(find_model_type(type) == architecture);
    }
  }
  CHECK(find_model_type("") == nullptr);
  JsonObject file = sound();
  file.erase("architectures");
  file["model_type"] = "mistral";
  const auto config = parse_config(dump_json(file));
  REQUIRE(config.ok());
  CHECK(config.value().architecture->name == "MistralForCausalLM");
  file["architectures"] = JsonArray{"LlamaForCausalLM"};  // takes precedence
  CHECK(parse_config(dump_json(file)).value().architecture->name == "LlamaForCausalLM");
}

TEST_CASE("the text model inside a multimodal model is read") {
  JsonObject text = sound();
  text.erase("architectures");
  text["model_type"] = "ministral3";
  JsonObject file{{"architectures", JsonArray{"Mistral3ForConditionalGeneration"}},
                  {"model_type", "mistral3"},
                  {"hidden_size", 7},
                  {"quantization_config", JsonObject{{"quant_method", "fp8"}}},
                  {"tie_word_embeddings", true},
                  {"text_config", text},
                  {"vision_config", JsonObject{{"hidden_size", 9}}}};
  const auto config = parse_config(dump_json(file));
  REQUIRE(config.ok());
  CHECK(config.value().architecture->name == "Ministral3ForCausalLM");
  CHECK(config.value().hidden == 128);
  CHECK(config.value().has_vision);
  CHECK(config.value().tied_embeddings);

  text["tie_word_embeddings"] = false;  // the text model's own value takes precedence
  file["text_config"] = text;
  CHECK(!parse_config(dump_json(file)).value().tied_embeddings);
  text["architectures"] = JsonArray{"Qwen3ForCausalLM"};
  file["text_config"] = text;
  CHECK(parse_config(dump_json(file)).value().architecture->name == "Qwen3ForCausalLM");
  CHECK(!parse_config(dump_json(sound())).value().has_vision);

  text.erase("architectures");
  text["model_type"] = "gemma3_text";
  file["text_config"] = text;
  const auto unknown = parse_config(dump_json(file));
  REQUIRE(!unknown.ok());
  CHECK(unknown.error().code == ErrorCode::kUnsupported);
  CHECK(unknown.error().message.find("the model type \"gemma3_text\" inside "
                                     "Mistral3ForConditionalGeneration is unknown here; known "
                                     "are: LlamaForCausalLM, ") == 0);
}

TEST_CASE("invalid and unsupported values are refused by name") {
  const Refusal refusals[] = {
      {"architectures", JsonArray{"MambaForCausalLM"}, "MambaForCausalLM"},
      {"architectures", "LlamaForCausalLM", "\"architectures\" is missing"},
      {"vocab_size", nullptr, "\"vocab_size\" is missing"},
      {"vocab_size", 0, "\"vocab_size\" is 0"},
      {"vocab_size", "many", "\"vocab_size\" must be an integer"},
      {"hidden_size", int64_t{1} << 40, "\"hidden_size\" is 1099511627776"},
      {"num_hidden_layers", 1025, "\"num_hidden_layers\" is 1025, it must be from 1 to 1024"},
      {"num_attention_heads", 6, "6 attention heads cannot share 4"},
      {"num_hidden_layers", 5000, "\"num_hidden_layers\" is 5000, it must be from 1 to 1024"},
      {"num_attention_heads", 1 << 20, "1048576 attention heads of 16 elements are too large"},
      {"head_dim", 15, "\"head_dim\" is 15"},
      {"head_dim", 1024, "\"head_dim\" is 1024"},
      {"rms_norm_eps", -1.0, "\"rms_norm_eps\" is -1"},
      {"rope_theta", 0, "\"rope_theta\" is 0"},
      {"rope_scaling", 7, "\"rope_scaling\" must be an object"},
      {"rope_scaling", JsonObject{{"rope_type", "longrope"}}, "\"longrope\""},
      {"sliding_window", -5, "\"sliding_window\" is -5"},
      {"layer_types", JsonArray{"linear_attention", "full_attention"}, "linear_attention"},
      {"rope_scaling", JsonObject{{"rope_type", "llama3"}}, "\"factor\" is missing"},
      {"attention_bias", true, "attention_bias"},
      {"hidden_act", "gelu", "gelu"}};
  for (const Refusal& refusal : refusals) {
    JsonObject file = sound();
    if (std::string_view(refusal.key) == "layer_types") file["sliding_window"] = 7;
    if (refusal.value == 1 << 20) file["head_dim"] = 16;
    file[refusal.key] = refusal.value;
    const auto config = parse_config(dump_json(file));
    REQUIRE_MESSAGE(!config.ok(), refusal.sentence);
    CHECK_MESSAGE(config.error().message.find(refusal.sentence) != std::string::npos,
                  config.error().message);
  }
  JsonObject experts = sound();
  experts["architectures"] = JsonArray{"Qwen3MoeForCausalLM"};
  experts["num_experts"] = 1 << 20;  // whose tensor names alone would fill the memory
  CHECK(parse_config(dump_json(experts)).error().message ==
        "\"num_experts\" is 1048576, it must be from 1 to 2048");
  CHECK(!parse_config("[]").ok());
  CHECK(!parse_config("{").ok());
  CHECK(!read_config("/nonexistent").ok());
}
