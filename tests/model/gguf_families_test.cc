// Families whose layers differ: the configuration from a file's values is that of the published
// config.json.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "json/json.h"
#include "model/config/config.h"
#include "model/config/gguf_config.h"
#include "model/shapes/known_shapes.h"
#include "support/gguf_writer.h"

using namespace lockstep;

namespace {

constexpr uint32_t kAbsentType = 77;  // its tensors need no bytes in the file

using Values = std::vector<std::pair<const char*, uint32_t>>;

GgufWriter writer_of(const std::string& architecture, const Values& values) {
  GgufWriter writer;
  writer.string("general.architecture", architecture);
  for (const auto& [name, value] : values) writer.integer(architecture + "." + name, value);
  writer.number(architecture + ".attention.layer_norm_rms_epsilon", 1e-6f);
  return writer;
}

std::string array_of(const std::vector<uint32_t>& values) {
  std::string bytes;
  for (const uint32_t value : values) bytes += GgufWriter::raw(value);
  return bytes;
}

Result<ModelConfig> config_of(const GgufWriter& writer) {
  const std::string file = writer.file(256);
  const GgufModel model = TRY(GgufModel::parse(std::as_bytes(std::span(file))));
  return parse_config(TRY(gguf_config(model)));
}

std::string refusal_of(const GgufWriter& writer) {
  const auto config = config_of(writer);
  return config.ok() ? "no error" : config.error().message;
}

ModelConfig published(const char* name) {
  return parse_config(find_known_shape(name)->config).value();
}

void check_equal(const ModelConfig& got, const ModelConfig& expected) {
  CHECK(got.architecture == expected.architecture);
  CHECK(got.layers == expected.layers);
  CHECK(got.hidden == expected.hidden);
  CHECK(got.ffn == expected.ffn);
  CHECK(got.heads == expected.heads);
  CHECK(got.kv_heads == expected.kv_heads);
  CHECK(got.head_dim == expected.head_dim);
  CHECK(got.rotary_dims == expected.rotary_dims);
  CHECK(got.rope_theta == expected.rope_theta);
  CHECK(got.vocab_size == expected.vocab_size);
  CHECK(got.tied_embeddings == expected.tied_embeddings);
  CHECK(got.layer_input == expected.layer_input);
  CHECK(got.experts.count == expected.experts.count);
  CHECK(got.experts.chosen == expected.experts.chosen);
  CHECK(got.experts.ffn == expected.experts.ffn);
  CHECK(got.experts.shared_ffn == expected.experts.shared_ffn);
  CHECK(got.experts.normalises == expected.experts.normalises);
  for (int layer = 0; layer < got.layers; ++layer) {
    CAPTURE(layer);
    CHECK(got.layer(layer).window == expected.layer(layer).window);
    CHECK(got.layer(layer).mixer == expected.layer(layer).mixer);
    CHECK(got.layer(layer).state_layer == expected.layer(layer).state_layer);
    CHECK(got.layer(layer).ffn == expected.layer(layer).ffn);
    CHECK(got.layer(layer).has_experts == expected.layer(layer).has_experts);
  }
}

// Qwen3.5-27B, as its published GGUF files have it.
Values qwen35_values() {
  return {{"block_count", 64},           {"context_length", 262144},
          {"embedding_length", 5120},    {"feed_forward_length", 17408},
          {"attention.head_count", 24},  {"attention.head_count_kv", 4},
          {"attention.key_length", 256}, {"attention.value_length", 256},
          {"rope.dimension_count", 64},  {"ssm.conv_kernel", 4},
          {"ssm.state_size", 128},       {"ssm.group_count", 16},
          {"ssm.time_step_rank", 48},    {"ssm.inner_size", 6144},
          {"full_attention_interval", 4}};
}

GgufWriter qwen35(const Values& values) {
  GgufWriter writer = writer_of("qwen35", values);
  writer.number("qwen35.rope.freq_base", 1e7f);
  writer.tensor("token_embd.weight", {5120, 248320}, kAbsentType, 0);
  writer.tensor("output.weight", {5120, 248320}, kAbsentType, 0);
  return writer;
}

// Gemma 4 E4B, but for the values that `widths` and the divisors replace.
GgufWriter gemma4_e4b(const std::vector<float>& divisors, const std::vector<uint32_t>& widths) {
  GgufWriter writer = writer_of("gemma4", {{"block_count", 42},
                                           {"context_length", 131072},
                                           {"embedding_length", 2560},
                                           {"attention.head_count", 8},
                                           {"attention.head_count_kv", 2},
                                           {"attention.key_length", 512},
                                           {"attention.value_length", 512},
                                           {"attention.key_length_swa", 256},
                                           {"attention.value_length_swa", 256},
                                           {"attention.sliding_window", 512},
                                           {"attention.shared_kv_layers", 18},
                                           {"embedding_length_per_layer_input", 256},
                                           {"rope.dimension_count", 512}});
  std::string marks;
  for (int layer = 0; layer < 42; ++layer) marks += static_cast<char>(layer % 6 != 5);
  writer.array("gemma4.attention.sliding_window_pattern", GgufWriter::kBool, 42, marks);
  writer.array("gemma4.feed_forward_length", GgufWriter::kUint32, widths.size(), array_of(widths));
  writer.number("gemma4.rope.freq_base", 1e6f).number("gemma4.rope.freq_base_swa", 1e4f);
  writer.number("gemma4.final_logit_softcapping", 30);
  writer.tensor("token_embd.weight", {2560, 262144}, kAbsentType, 0);
  writer.tensor("blk.5.attn_v.weight", {2560, 1024}, kAbsentType, 0);
  writer.floats("rope_freqs.weight", {divisors.size()}, divisors);
  return writer;
}

// DeepSeek V4 Flash, with these limits of the experts' activations.
GgufWriter deepseek4_flash(uint32_t blocks, const std::vector<float>& limits) {
  GgufWriter writer = writer_of("deepseek4", {{"block_count", blocks},
                                              {"nextn_predict_layers", 1},
                                              {"context_length", 1048576},
                                              {"embedding_length", 4096},
                                              {"attention.head_count", 64},
                                              {"attention.head_count_kv", 1},
                                              {"attention.key_length", 512},
                                              {"attention.value_length", 512},
                                              {"attention.q_lora_rank", 1024},
                                              {"attention.output_lora_rank", 1024},
                                              {"attention.output_group_count", 8},
                                              {"attention.sliding_window", 128},
                                              {"attention.indexer.head_count", 64},
                                              {"attention.indexer.key_length", 128},
                                              {"attention.indexer.top_k", 512},
                                              {"rope.dimension_count", 64},
                                              {"rope.scaling.original_context_length", 65536},
                                              {"hash_layer_count", 3},
                                              {"hyper_connection.count", 4},
                                              {"hyper_connection.sinkhorn_iterations", 20},
                                              {"expert_count", 256},
                                              {"expert_used_count", 6},
                                              {"expert_shared_count", 1},
                                              {"expert_feed_forward_length", 2048},
                                              {"expert_gating_func", 4}});
  writer.boolean("deepseek4.expert_weights_norm", true);
  writer.string("deepseek4.rope.scaling.type", "yarn");
  writer.number("deepseek4.rope.scaling.factor", 16).number("deepseek4.rope.freq_base", 1e4f);
  writer.number("deepseek4.expert_weights_scale", 1.5f);
  writer.number("deepseek4.attention.compress_rope_freq_base", 160000);
  writer.number("deepseek4.hyper_connection.epsilon", 1e-6f);
  std::vector<uint32_t> pools{0, 0};
  while (pools.size() < 43) pools.push_back(pools.size() % 2 == 0 ? 4 : 128);
  pools.push_back(0);
  writer.array("deepseek4.attention.compress_ratios", GgufWriter::kUint32, pools.size(),
               array_of(pools));
  std::string bytes;
  for (const float limit : limits) bytes += GgufWriter::raw(limit);
  writer.array("deepseek4.swiglu_clamp_exp", GgufWriter::kFloat32, limits.size(), bytes);
  writer.tensor("token_embd.weight", {4096, 129280}, kAbsentType, 0);
  writer.tensor("output.weight", {4096, 129280}, kAbsentType, 0);
  return writer;
}

std::vector<float> divisors_of(size_t turning) {
  std::vector<float> divisors(256, 1e30f);
  for (size_t pair = 0; pair < turning; ++pair) divisors[pair] = 1;
  return divisors;
}

}  // namespace

TEST_CASE("the values of Qwen 3.5 27B give its published configuration") {
  const ModelConfig expected = published("qwen3.5-27b");
  const auto config = config_of(qwen35(qwen35_values()));
  REQUIRE_MESSAGE(config.ok(), config.error().message);
  check_equal(config.value(), expected);
  const DeltaConfig& delta = *config.value().delta;
  CHECK(delta.key_heads == expected.delta->key_heads);
  CHECK(delta.value_heads == expected.delta->value_heads);
  CHECK(delta.key_dim == expected.delta->key_dim);
  CHECK(delta.value_dim == expected.delta->value_dim);
  CHECK(delta.taps == expected.delta->taps);
  CHECK_FALSE(delta.groups_inputs);

  Values values = qwen35_values();
  values[0].second = 65;
  values.emplace_back("nextn_predict_layers", 1);
  const ModelConfig with_draft = config_of(qwen35(values)).value();
  CHECK(with_draft.layers == 64);
  CHECK(with_draft.predicting_layers == 1);

  GgufWriter listed = qwen35(qwen35_values());
  listed.array("qwen35.attention.recurrent_layers", GgufWriter::kBool, 64,
               std::string(32, '\1') + std::string(32, '\0'));
  const ModelConfig halves = config_of(listed).value();
  CHECK(halves.layer(31).is_recurrent());
  CHECK_FALSE(halves.layer(32).is_recurrent());

  values = qwen35_values();
  values[13].second = 6145;
  CHECK(refusal_of(qwen35(values)) == "48 value heads cannot share 6145 columns");
  values[13].first = "ssm.other";
  CHECK(refusal_of(qwen35(values)) == "the GGUF value qwen35.ssm.inner_size is missing");
}

TEST_CASE("the values of DeepSeek V4 Flash give its published configuration") {
  const ModelConfig expected = published("deepseek-v4-flash");
  const auto config = config_of(deepseek4_flash(43, std::vector<float>(43, 10)));
  REQUIRE_MESSAGE(config.ok(), config.error().message);
  check_equal(config.value(), expected);
  CHECK(config.value().predicting_layers == 0);  // which the file counts and has not
  CHECK(config.value().pools == expected.pools);
  CHECK(config.value().indexer.chosen == expected.indexer.chosen);
  CHECK(config.value().compressed->groups == expected.compressed->groups);
  CHECK(config.value().compressed->group_rank == expected.compressed->group_rank);
  CHECK(config.value().layer(2).has_given_experts);
  CHECK_FALSE(config.value().layer(3).has_given_experts);
  CHECK(config.value().layer(42).pool == 4);

  // Its draft layer is not used, as it lacks a part.
  GgufWriter with_draft = deepseek4_flash(44, std::vector<float>(44, 10));
  with_draft.tensor("blk.43.nextn.eh_proj.weight", {8192, 4096}, kAbsentType, 0);
  const auto drafting = config_of(with_draft);
  REQUIRE_MESSAGE(drafting.ok(), drafting.error().message);
  CHECK(drafting.value().layers == 43);
  CHECK(drafting.value().predicting_layers == 0);

  CHECK(refusal_of(deepseek4_flash(43, {10, 10, 7})) ==
        "the GGUF value deepseek4.swiglu_clamp_exp differs between layers, which is not supported");
  CHECK(refusal_of(deepseek4_flash(45, {10})) ==
        "the GGUF value deepseek4.attention.compress_ratios has 44 entries for 45 layers");
}

TEST_CASE("the values of Gemma 4 E4B give its published configuration") {
  const ModelConfig expected = published("gemma-4-e4b");
  const std::vector<uint32_t> widths(42, 10240);
  const auto config = config_of(gemma4_e4b(divisors_of(64), widths));
  REQUIRE_MESSAGE(config.ok(), config.error().message);
  check_equal(config.value(), expected);
  const FullAttention& full = *config.value().full;
  CHECK(full.head_dim == expected.full->head_dim);
  CHECK(full.kv_heads == expected.full->kv_heads);
  CHECK(full.rope_theta == expected.full->rope_theta);
  CHECK(full.turning_pairs == expected.full->turning_pairs);
  CHECK(full.values_are_keys == expected.full->values_are_keys);

  std::vector<float> mixed = divisors_of(64);
  mixed[100] = 1;
  CHECK(refusal_of(gemma4_e4b(mixed, widths)) ==
        "rope_freqs.weight divides the frequency of pair 100 by 1: only 1 for the first pairs, and "
        "then 1e30, is supported");
  mixed[100] = 8;
  CHECK(refusal_of(gemma4_e4b(mixed, widths)).find("of pair 100 by 8: only 1") !=
        std::string::npos);
  std::vector<uint32_t> doubled = widths;
  for (size_t layer = 24; layer < 42; ++layer) doubled[layer] *= 2;
  CHECK(config_of(gemma4_e4b(divisors_of(64), doubled)).value().layer(24).ffn == 20480);
  doubled[30] = 7;
  CHECK(refusal_of(gemma4_e4b(divisors_of(64), doubled)) ==
        "layer 30 is 7 wide, which is not supported after 10240");
  CHECK(refusal_of(gemma4_e4b(divisors_of(64), {1, 2})) ==
        "the GGUF value gemma4.feed_forward_length has 2 entries for 42 layers");
}

TEST_CASE("GLM's files under DeepSeek's architecture are known by their tokenizer") {
  for (const bool is_glm : {false, true}) {
    GgufWriter writer = writer_of("deepseek2", {{"block_count", 2},
                                                {"context_length", 64},
                                                {"embedding_length", 64},
                                                {"feed_forward_length", 64},
                                                {"attention.head_count", 4},
                                                {"attention.q_lora_rank", 32},
                                                {"attention.kv_lora_rank", 32},
                                                {"attention.key_length", 24},
                                                {"attention.value_length", 16},
                                                {"rope.dimension_count", 8},
                                                {"expert_count", 8},
                                                {"expert_used_count", 2},
                                                {"expert_feed_forward_length", 32}});
    if (!is_glm) writer.integer("deepseek2.expert_gating_func", 2);
    writer.string("tokenizer.ggml.pre", is_glm ? "glm4" : "deepseek-v3");
    writer.tensor("token_embd.weight", {64, 32}, kAbsentType, 0);
    const auto config = config_of(writer);
    REQUIRE_MESSAGE(config.ok(), config.error().message);
    CHECK(config.value().architecture->name ==
          (is_glm ? "Glm4MoeLiteForCausalLM" : "DeepseekV3ForCausalLM"));
  }
}

TEST_CASE("Gemma 4's answers end at its own marks, whatever their types") {
  for (const std::string model : {"gemma4", "llama"}) {
    GgufWriter writer = gemma4_e4b(divisors_of(64), std::vector<uint32_t>(42, 10240));
    writer.string("tokenizer.ggml.model", model);
    writer.strings("tokenizer.ggml.tokens", {"<pad>", "<eos>", "a", "<turn|>", "<|tool_response>"});
    std::string types;
    for (const int32_t type : {3, 1, 1, 3, 4}) types += GgufWriter::raw(type);
    writer.array("tokenizer.ggml.token_type", GgufWriter::kInt32, 5, types);
    writer.array("tokenizer.ggml.eos_token_ids", GgufWriter::kUint32, 1, array_of({2}));
    const std::string file = writer.file(256);
    const auto parsed = GgufModel::parse(std::as_bytes(std::span(file)));
    const Json json = parse_json(gguf_config(parsed.value()).value()).value();
    const JsonArray expected = model == "gemma4" ? JsonArray{1, 2, 3, 4} : JsonArray{2};
    CHECK(*find(json, "eos_token_id") == expected);
  }
}
