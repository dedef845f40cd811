#include "model/config/gguf_config.h"

#include <doctest/doctest.h>

#include <fstream>
#include <string>

#include "json/json.h"
#include "model/config/config.h"
#include "model/forward/rope.h"
#include "support/gguf_writer.h"

using namespace lockstep;

namespace {

constexpr uint32_t kUnknownType = 77;  // its tensors need no bytes in the file

// The metadata common to all files, as llama.cpp's converter writes it.
class Metadata : public GgufWriter {
 public:
  explicit Metadata(std::string architecture) : architecture_(std::move(architecture)) {
    string("general.architecture", architecture_);
  }
  Metadata& set(std::string_view name, uint32_t number) {
    integer(architecture_ + "." + std::string(name), number);
    return *this;
  }
  Metadata& set(std::string_view name, float value) {
    number(architecture_ + "." + std::string(name), value);
    return *this;
  }
  Metadata& set(std::string_view name, bool value) {
    boolean(architecture_ + "." + std::string(name), value);
    return *this;
  }
  Metadata& set(std::string_view name, const char* value) {
    string(architecture_ + "." + std::string(name), value);
    return *this;
  }
  Metadata& shape(std::string_view name, const std::vector<uint64_t>& dimensions) {
    tensor(name, dimensions, kUnknownType, 0);
    return *this;
  }

 private:
  std::string architecture_;
};

Metadata llama_1b() {
  Metadata data("llama");
  data.set("block_count", 16u).set("context_length", 131072u).set("embedding_length", 2048u);
  data.set("feed_forward_length", 8192u).set("attention.head_count", 32u);
  data.set("attention.head_count_kv", 8u).set("rope.freq_base", 500000.0f);
  data.set("attention.layer_norm_rms_epsilon", 1e-5f).set("attention.key_length", 64u);
  data.set("attention.value_length", 64u).set("vocab_size", 128256u);
  data.set("rope.dimension_count", 64u).shape("token_embd.weight", {2048, 128256});
  return data;
}

Metadata qwen3_30b() {
  Metadata data("qwen3moe");
  data.set("block_count", 48u).set("context_length", 40960u).set("embedding_length", 2048u);
  data.set("feed_forward_length", 6144u).set("attention.head_count", 32u);
  data.set("attention.head_count_kv", 4u).set("rope.freq_base", 1000000.0f);
  data.set("attention.layer_norm_rms_epsilon", 1e-6f).set("attention.key_length", 128u);
  data.set("attention.value_length", 128u).set("expert_count", 128u);
  data.set("expert_used_count", 8u).set("expert_feed_forward_length", 768u);
  data.shape("token_embd.weight", {2048, 151936}).shape("output.weight", {2048, 151936});
  data.shape("blk.0.attn_q_norm.weight", {128});
  return data;
}

Metadata deepseek_v3(bool is_absorbed, uint32_t experts = 256, uint32_t gating = 2,
                     uint32_t shared_experts = 1) {
  Metadata data("deepseek2");
  data.set("block_count", 61u).set("context_length", 163840u).set("embedding_length", 7168u);
  data.set("feed_forward_length", 18432u).set("attention.head_count", 128u);
  data.set("attention.head_count_kv", is_absorbed ? 1u : 128u).set("rope.freq_base", 10000.0f);
  data.set("attention.layer_norm_rms_epsilon", 1e-6f).set("expert_used_count", 8u);
  data.set("leading_dense_block_count", 3u).set("attention.q_lora_rank", 1536u);
  data.set("attention.kv_lora_rank", 512u).set("rope.dimension_count", 64u);
  data.set("attention.key_length", is_absorbed ? 576u : 192u);
  data.set("attention.value_length", is_absorbed ? 512u : 128u);
  if (is_absorbed) data.set("attention.key_length_mla", 192u);
  if (is_absorbed) data.set("attention.value_length_mla", 128u);
  data.set("expert_feed_forward_length", 2048u).set("expert_count", experts);
  data.set("expert_shared_count", shared_experts).set("expert_weights_scale", 2.5f);
  data.set("expert_weights_norm", true).set("expert_gating_func", gating);
  data.set("rope.scaling.type", "yarn").set("rope.scaling.factor", 40.0f);
  data.set("rope.scaling.original_context_length", 4096u);
  data.set("rope.scaling.yarn_log_multiplier", 0.1f);
  data.shape("token_embd.weight", {7168, 129280}).shape("output.weight", {7168, 129280});
  return data;
}

Metadata gpt_oss_20b() {
  Metadata data("gpt-oss");
  data.set("block_count", 4u).set("context_length", 131072u).set("embedding_length", 2880u);
  data.set("feed_forward_length", 2880u).set("attention.head_count", 64u);
  data.set("attention.head_count_kv", 8u).set("rope.freq_base", 150000.0f);
  data.set("attention.layer_norm_rms_epsilon", 1e-5f).set("attention.key_length", 64u);
  data.set("attention.value_length", 64u).set("expert_count", 32u).set("expert_used_count", 4u);
  data.set("expert_feed_forward_length", 2880u).set("attention.sliding_window", 128u);
  data.set("rope.scaling.type", "yarn").set("rope.scaling.factor", 32.0f);
  data.set("rope.scaling.original_context_length", 4096u);
  data.shape("token_embd.weight", {2880, 201088}).shape("output.weight", {2880, 201088});
  data.shape("blk.0.attn_q.bias", {4096});
  return data;
}

Result<std::string> text_of(const GgufWriter& writer) {
  const std::string file = writer.file(64);
  auto model = GgufModel::parse(std::as_bytes(std::span(file)));
  if (!model.ok()) return model.error();
  return gguf_config(model.value());
}

ModelConfig config_of_gguf(const GgufWriter& writer) {
  const auto text = text_of(writer);
  REQUIRE_MESSAGE(text.ok(), text.error().message);
  const auto config = parse_config(text.value());
  REQUIRE_MESSAGE(config.ok(), config.error().message);
  return config.value();
}

Json json_of(const GgufWriter& writer) {
  const auto text = text_of(writer);
  REQUIRE_MESSAGE(text.ok(), text.error().message);
  return parse_json(text.value()).value();
}

std::string error_of(const GgufWriter& writer) {
  const auto text = text_of(writer);
  if (!text.ok()) return text.error().message;
  const auto config = parse_config(text.value());
  return config.ok() ? "no error" : config.error().message;
}

}  // namespace

TEST_CASE("the metadata of Llama 3.2 1B gives its configuration") {
  const ModelConfig config = config_of_gguf(llama_1b());
  CHECK(config.architecture->name == "LlamaForCausalLM");
  CHECK(config.vocab_size == 128256);
  CHECK(config.hidden == 2048);
  CHECK(config.ffn == 8192);
  CHECK(config.layers == 16);
  CHECK(config.heads == 32);
  CHECK(config.kv_heads == 8);
  CHECK(config.head_dim == 64);
  CHECK(config.rotary_dims == 64);
  CHECK(config.positions_max == 131072);
  CHECK(config.norm_epsilon == 1e-5f);
  CHECK(config.rope_theta == 500000);
  CHECK(config.tied_embeddings);
  CHECK_FALSE(config.head_norms);
  CHECK(config.traits.size() == 16);
  for (const LayerTraits& layer : config.traits) CHECK(layer.window == 0);
}

TEST_CASE("factors of the rope frequencies equal Llama 3's scaling") {
  JsonObject published = json_of(llama_1b()).get_object();
  const std::vector<double> unscaled = rope_frequencies(parse_config(dump_json(published)).value());
  published["rope_scaling"] = JsonObject{{"rope_type", "llama3"},
                                         {"factor", 32.0},
                                         {"low_freq_factor", 1.0},
                                         {"high_freq_factor", 4.0},
                                         {"original_max_position_embeddings", 8192}};
  const std::vector<double> expected = rope_frequencies(parse_config(dump_json(published)).value());
  std::vector<float> factors;
  for (size_t i = 0; i < expected.size(); ++i) {
    factors.push_back(static_cast<float>(unscaled[i] / expected[i]));
  }
  CHECK(factors.front() == 1);
  CHECK(factors.back() == doctest::Approx(32));
  Metadata data = llama_1b();
  data.floats("rope_freqs.weight", {32}, factors);
  const std::vector<double> frequencies = rope_frequencies(config_of_gguf(data));
  REQUIRE(frequencies.size() == expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    CHECK(frequencies[i] == doctest::Approx(expected[i]).epsilon(1e-7));
  }
  Metadata few = llama_1b();
  few.floats("rope_freqs.weight", {2}, {1, 1});
  CHECK(error_of(few) == "\"rope_frequency_factors\" must be 32 numbers");
  Metadata zero = llama_1b();
  zero.floats("rope_freqs.weight", {32}, std::vector<float>(32, 0));
  CHECK(error_of(zero) == "\"rope_frequency_factors\" must be positive numbers");
}

TEST_CASE("the metadata of Qwen3 30B A3B gives its configuration") {
  const ModelConfig config = config_of_gguf(qwen3_30b());
  CHECK(config.architecture->name == "Qwen3MoeForCausalLM");
  CHECK(config.head_norms);
  CHECK_FALSE(config.tied_embeddings);
  CHECK(config.head_dim == 128);
  CHECK(config.experts.count == 128);
  CHECK(config.experts.chosen == 8);
  CHECK(config.experts.ffn == 768);
  CHECK(config.experts.shared_ffn == 0);
  CHECK(config.experts.normalises);
  CHECK(config.traits.size() == 48);
  for (const LayerTraits& layer : config.traits) CHECK(layer.has_experts);
}

TEST_CASE("the metadata of DeepSeek V3 gives its configuration, from old and new files") {
  for (const bool is_absorbed : {false, true}) {
    const ModelConfig config = config_of_gguf(deepseek_v3(is_absorbed));
    CHECK(config.architecture->name == "DeepseekV3ForCausalLM");
    CHECK(config.layers == 61);
    CHECK(config.heads == 128);
    CHECK(config.kv_heads == 128);
    CHECK(config.latent.query_rank == 1536);
    CHECK(config.latent.kv_rank == 512);
    CHECK(config.latent.nope == 128);
    CHECK(config.latent.rope == 64);
    CHECK(config.latent.value == 128);
    CHECK(config.head_dim == 192);
    CHECK(config.experts.count == 256);
    CHECK(config.experts.chosen == 8);
    CHECK(config.experts.groups == 8);
    CHECK(config.experts.chosen_groups == 4);
    CHECK(config.experts.shared_ffn == 2048);
    CHECK(config.experts.normalises);
    CHECK(config.experts.factor == 2.5f);
    CHECK_FALSE(config.layer(2).has_experts);
    CHECK(config.layer(3).has_experts);
    REQUIRE(config.yarn_rope);
    CHECK(config.yarn_rope->factor == 40);
    CHECK(config.yarn_rope->original_positions == 4096);
    CHECK(config.yarn_rope->attention_factor == 1);
    CHECK(config.yarn_rope->softmax_factor == doctest::Approx(1.3688879454 * 1.3688879454));
  }
}

TEST_CASE("groups of experts come from the file, and there are none for another count") {
  CHECK(config_of_gguf(deepseek_v3(true, 384)).experts.groups == 1);
  Metadata grouped = deepseek_v3(true);
  grouped.set("expert_group_count", 16u).set("expert_group_used_count", 2u);
  CHECK(config_of_gguf(grouped).experts.groups == 16);
  CHECK(config_of_gguf(grouped).experts.chosen_groups == 2);
}

TEST_CASE("the metadata of gpt-oss gives its config.json") {
  const Json json = json_of(gpt_oss_20b());
  const Json expected = parse_json(R"({
    "architectures": ["GptOssForCausalLM"], "num_hidden_layers": 4, "hidden_size": 2880,
    "max_position_embeddings": 131072, "intermediate_size": 2880, "rms_norm_eps": 1e-05,
    "vocab_size": 201088, "tie_word_embeddings": false, "num_attention_heads": 64,
    "attention_bias": true, "use_qk_norm": false, "mlp_bias": false, "num_key_value_heads": 8,
    "head_dim": 64, "num_local_experts": 32, "num_experts_per_tok": 4, "rope_theta": 150000,
    "rope_scaling": {"rope_type": "yarn", "factor": 32, "original_max_position_embeddings": 4096,
                     "truncate": false},
    "sliding_window": 128,
    "layer_types": ["sliding_attention", "full_attention", "sliding_attention", "full_attention"]
  })")
                            .value();
  CHECK(json.get_object().size() == expected.get_object().size());
  for (const auto& member : expected.get_object()) {
    CAPTURE(std::string(member.key().data(), member.key().size()));
    const Json* found = find(json, {member.key().data(), member.key().size()});
    REQUIRE(found);
    const auto number = get_double(expected, {member.key().data(), member.key().size()});
    if (number.ok()) {
      CHECK(get_double(json, {member.key().data(), member.key().size()}).value() == number.value());
    } else if (!found->is_object()) {
      CHECK(*found == member.value());
    }
  }
  const Json& scaling = *find(json, "rope_scaling");
  CHECK(get_double(scaling, "factor").value() == 32.0);
  CHECK(get_bool(scaling, "truncate").value() == false);
}

TEST_CASE("a pattern of windows is a period or a list") {
  Metadata period = gpt_oss_20b();
  period.set("attention.sliding_window_pattern", 4u);
  const JsonArray three{"sliding_attention", "sliding_attention", "sliding_attention",
                        "full_attention"};
  CHECK(*find(json_of(period), "layer_types") == three);
  Metadata list = gpt_oss_20b();
  list.array("gpt-oss.attention.sliding_window_pattern", GgufWriter::kBool, 4,
             std::string("\0\1\1\0", 4));
  const JsonArray inner{"full_attention", "sliding_attention", "sliding_attention",
                        "full_attention"};
  CHECK(*find(json_of(list), "layer_types") == inner);
  Metadata few = gpt_oss_20b();
  few.array("gpt-oss.attention.sliding_window_pattern", GgufWriter::kBool, 1, "\1");
  CHECK(error_of(few) ==
        "the GGUF value gpt-oss.attention.sliding_window_pattern has 1 entries for 4 layers");
}

TEST_CASE("GLM 4.5 rotates half of a head and has layers after its own") {
  Metadata data("glm4moe");
  data.set("block_count", 47u).set("nextn_predict_layers", 1u).set("context_length", 131072u);
  data.set("embedding_length", 4096u).set("feed_forward_length", 10944u);
  data.set("attention.head_count", 96u).set("attention.head_count_kv", 8u);
  data.set("rope.freq_base", 1000000.0f).set("attention.layer_norm_rms_epsilon", 1e-5f);
  data.set("attention.key_length", 128u).set("attention.value_length", 128u);
  data.set("rope.dimension_count", 64u).set("expert_count", 128u).set("expert_used_count", 8u);
  data.set("expert_feed_forward_length", 1408u).set("expert_shared_count", 1u);
  data.set("leading_dense_block_count", 1u).set("expert_gating_func", 2u);
  data.set("expert_weights_scale", 1.0f).set("expert_weights_norm", true);
  data.shape("token_embd.weight", {4096, 151552}).shape("output.weight", {4096, 151552});
  data.shape("blk.0.attn_q.bias", {12288});
  const ModelConfig config = config_of_gguf(data);
  CHECK(config.layers == 46);
  CHECK(config.rotary_dims == 64);
  CHECK(config.qkv_bias);
  CHECK_FALSE(config.head_norms);
  CHECK(config.experts.groups == 1);
  CHECK(config.experts.shared_ffn == 1408);
  CHECK_FALSE(config.layer(0).has_experts);
  CHECK(config.layer(1).has_experts);
}

TEST_CASE("Ministral 3 has yarn and queries scaled by position") {
  Metadata data("mistral3");
  data.set("block_count", 2u).set("context_length", 262144u).set("embedding_length", 3072u);
  data.set("feed_forward_length", 9216u).set("attention.head_count", 32u);
  data.set("attention.head_count_kv", 8u).set("rope.freq_base", 1000000.0f);
  data.set("attention.layer_norm_rms_epsilon", 1e-5f).set("attention.key_length", 128u);
  data.set("attention.value_length", 128u).set("rope.dimension_count", 128u);
  data.set("rope.scaling.type", "yarn").set("rope.scaling.factor", 16.0f);
  data.set("rope.scaling.original_context_length", 16384u);
  data.set("rope.scaling.yarn_beta_fast", 32.0f).set("rope.scaling.yarn_beta_slow", 1.0f);
  data.set("rope.scaling.yarn_log_multiplier", 1.0f).set("attention.temperature_scale", 0.1f);
  data.shape("token_embd.weight", {3072, 131072});
  const ModelConfig config = config_of_gguf(data);
  REQUIRE(config.yarn_rope);
  CHECK(config.yarn_rope->attention_factor == 1);
  CHECK(config.query_scaling.beta == 0.1);
  CHECK(config.query_scaling.original_positions == 16384);
}

TEST_CASE("an answer ends at the file's own ids and at the control tokens known to end one") {
  Metadata data = llama_1b();
  data.integer("tokenizer.ggml.bos_token_id", 1).integer("tokenizer.ggml.eos_token_id", 2);
  data.strings("tokenizer.ggml.tokens", {"a", "<s>", "</s>", "<|eot_id|>", "<|im_end|>", "b"});
  std::string types;
  for (const int32_t type : {1, 3, 3, 3, 1, 1}) types += GgufWriter::raw(type);
  data.array("tokenizer.ggml.token_type", GgufWriter::kInt32, 6, types);
  const Json json = json_of(data);
  CHECK(*find(json, "eos_token_id") == JsonArray{2, 3});
  CHECK(*find(json, "bos_token_id") == 1);
}

TEST_CASE("missing and unsupported values are named") {
  struct Refusal {
    const char* name;
    float value;
    const char* sentence;
  };
  const Refusal refusals[] = {
      {"attention.scale", 0.5f,
       "the GGUF value llama.attention.scale is 0.5, which is not supported"},
      {"rope.scale_linear", 4.0f,
       "the GGUF value llama.rope.scale_linear is 4, which is not supported"},
      {"rope.scaling.attn_factor", 2.0f,
       "the GGUF value llama.rope.scaling.attn_factor is 2, which is not supported"}};
  for (const Refusal& refusal : refusals) {
    Metadata data = llama_1b();
    data.set(refusal.name, refusal.value);
    CHECK(error_of(data) == refusal.sentence);
  }
  CHECK(error_of(Metadata("llama")) == "the GGUF value llama.block_count is missing");
  CHECK(error_of(Metadata("bert")).find("the architecture \"bert\" is unknown here") == 0);
  Metadata mixtral = llama_1b();
  mixtral.set("expert_count", 8u);
  CHECK(error_of(mixtral) == "experts in the architecture \"llama\" are not supported");
  Metadata linear = llama_1b();
  linear.set("rope.scaling.type", "linear");
  CHECK(error_of(linear) ==
        "the rope scaling \"linear\" is unknown here; known are llama3 and yarn");
  Metadata biased = llama_1b();
  biased.shape("blk.0.attn_q.bias", {2048});
  CHECK(error_of(biased) == "\"attention_bias\": true is not supported for LlamaForCausalLM");
  Metadata bidirectional = llama_1b();
  bidirectional.set("attention.causal", false);
  CHECK(error_of(bidirectional) == "attention to later tokens is not supported");
  CHECK(error_of(deepseek_v3(true, 256, 2, 1 << 21)) ==
        "shared experts of 4294967296 columns together are too large");
  CHECK(error_of(deepseek_v3(true, 160, 1)) ==
        "experts chosen by function 1 are not supported for deepseek2, only 2, sigmoid, is");
  Metadata vocabulary_only("llama");
  vocabulary_only.set("block_count", 1u).set("context_length", 8u).set("embedding_length", 8u);
  vocabulary_only.set("feed_forward_length", 8u).set("attention.layer_norm_rms_epsilon", 1e-5f);
  CHECK(error_of(vocabulary_only) ==
        "the file holds no weights: there is no matrix token_embd.weight");
}

TEST_CASE("equal values of all layers count as one value") {
  const auto with_heads = [](int32_t second) {
    Metadata data("qwen3");
    data.set("block_count", 2u).set("context_length", 64u).set("embedding_length", 64u);
    data.set("feed_forward_length", 64u).set("attention.head_count", 4u);
    data.set("attention.layer_norm_rms_epsilon", 1e-6f).shape("token_embd.weight", {64, 32});
    data.array("qwen3.attention.head_count_kv", GgufWriter::kInt32, 2,
               GgufWriter::raw<int32_t>(2) + GgufWriter::raw(second));
    return data;
  };
  CHECK(config_of_gguf(with_heads(2)).kv_heads == 2);
  CHECK(error_of(with_heads(4)) ==
        "the GGUF value qwen3.attention.head_count_kv differs between layers, which is not "
        "supported");
}
