// Fields that published config.json files write under two names or in two places: which one counts,
// with either alone, with both, and in either order.
#include <doctest/doctest.h>

#include <initializer_list>
#include <string>
#include <utility>

#include "json/json.h"
#include "model/config/config.h"

using namespace lockstep;

namespace {

using Members = std::initializer_list<std::pair<const char*, Json>>;

JsonObject file_of(const char* architecture) {
  return {{"architectures", JsonArray{architecture}},
          {"vocab_size", 320},
          {"hidden_size", 128},
          {"intermediate_size", 256},
          {"num_hidden_layers", 4},
          {"num_attention_heads", 8},
          {"num_key_value_heads", 4}};
}

ModelConfig config_of(const JsonObject& file) {
  const auto config = parse_config(dump_json(file));
  REQUIRE_MESSAGE(config.ok(), config.error().message);
  return config.value();
}

// The value does not depend on the order of the members.
template <class Read>
auto read_both_orders(const JsonObject& base, Members members, Read read) {
  JsonObject forward = base, backward = base;
  for (const auto& [key, value] : members) forward[key] = value;
  for (auto member = std::rbegin(members); member != std::rend(members); ++member) {
    backward[member->first] = member->second;
  }
  const auto value = read(config_of(forward));
  CHECK(read(config_of(backward)) == value);
  return value;
}

JsonObject with_experts(const char* architecture, Members members = {}) {
  JsonObject file = file_of(architecture);
  file["moe_intermediate_size"] = 64;
  for (const auto& [key, value] : members) file[key] = value;
  return file;
}

JsonObject yarn(double factor) {
  return {{"rope_type", "yarn"}, {"factor", factor}, {"original_max_position_embeddings", 64}};
}

double theta(const ModelConfig& config) {
  return config.rope_theta;
}
double yarn_factor(const ModelConfig& config) {
  return config.yarn_rope ? config.yarn_rope->factor : 0;
}

}  // namespace

TEST_CASE("of two names for the experts of a token, num_experts_per_tok counts") {
  const auto chosen = [](const ModelConfig& config) { return config.experts.chosen; };
  for (const char* name : {"GptOssForCausalLM", "Qwen3MoeForCausalLM", "Glm4MoeForCausalLM"}) {
    const JsonObject base = with_experts(name, {{"num_local_experts", 32}});
    CHECK(read_both_orders(base, {{"num_experts_per_tok", 4}, {"experts_per_token", 6}}, chosen) ==
          4);
    CHECK(read_both_orders(base, {{"experts_per_token", 6}}, chosen) == 6);
    CHECK(read_both_orders(base, {{"num_experts_per_tok", nullptr}, {"experts_per_token", 6}},
                           chosen) == 6);
    CHECK(parse_config(dump_json(base)).error().message == "\"num_experts_per_tok\" is missing");
  }
}

TEST_CASE("of three names for the number of experts, the architecture's own counts") {
  const auto count = [](const ModelConfig& config) { return config.experts.count; };
  const std::pair<const char*, int> own[] = {
      {"Qwen3MoeForCausalLM", 8}, {"GptOssForCausalLM", 16}, {"Glm4MoeForCausalLM", 32}};
  for (const auto& [name, expected] : own) {
    const JsonObject base = with_experts(name, {{"num_experts_per_tok", 2}});
    CHECK(read_both_orders(
              base, {{"num_experts", 8}, {"num_local_experts", 16}, {"n_routed_experts", 32}},
              count) == expected);
    for (const char* key : {"num_experts", "num_local_experts", "n_routed_experts"}) {
      CHECK(read_both_orders(base, {{key, 24}}, count) == 24);
    }
  }
  CHECK(parse_config(dump_json(with_experts("Qwen3MoeForCausalLM"))).error().message ==
        "\"num_experts\" is missing");
}

TEST_CASE("the weights of chosen experts are normalised by default as in transformers") {
  const auto normalises = [](const ModelConfig& config) { return config.experts.normalises; };
  const Members sizes = {{"num_local_experts", 8}, {"num_experts_per_tok", 2}};
  const std::pair<const char*, bool> kDefaults[] = {
      {"Qwen3MoeForCausalLM", false}, {"Glm4MoeForCausalLM", true}, {"GptOssForCausalLM", true}};
  for (const auto& [name, expected] : kDefaults) {
    CHECK(read_both_orders(with_experts(name), sizes, normalises) == expected);
  }
  const JsonObject base = with_experts("Qwen3MoeForCausalLM", sizes);
  CHECK(read_both_orders(base, {{"norm_topk_prob", true}}, normalises));
}

TEST_CASE("a rope theta in rope_parameters counts before the one at the top") {
  const JsonObject base = file_of("LlamaForCausalLM");
  const JsonObject plain{{"rope_type", "default"}};
  const JsonObject inner{{"rope_type", "default"}, {"rope_theta", 5e5}};
  CHECK(read_both_orders(base, {}, theta) == 1e4);
  CHECK(read_both_orders(base, {{"rope_theta", 1e6}}, theta) == 1e6);
  CHECK(read_both_orders(base, {{"rope_parameters", inner}}, theta) == 5e5);
  CHECK(read_both_orders(base, {{"rope_theta", 1e6}, {"rope_parameters", inner}}, theta) == 5e5);
  // Without one of its own it does not hide the file's.
  CHECK(read_both_orders(base, {{"rope_theta", 1e6}, {"rope_parameters", plain}}, theta) == 1e6);
  CHECK(read_both_orders(base, {{"rope_theta", 1e6}, {"rope_parameters", nullptr}}, theta) == 1e6);
}

TEST_CASE("a rope scaling that an owner adds counts before rope_parameters") {
  const JsonObject base = file_of("Qwen3ForCausalLM");
  const JsonObject plain{{"rope_type", "default"}, {"rope_theta", 1e6}};
  JsonObject scaled = yarn(8);
  scaled["rope_theta"] = 5e5;
  const Members added = {{"rope_parameters", plain}, {"rope_scaling", yarn(4)}};
  CHECK(read_both_orders(base, added, yarn_factor) == 4);
  CHECK(read_both_orders(base, added, theta) == 1e6);
  const Members both = {{"rope_parameters", scaled}, {"rope_scaling", yarn(4)}};
  CHECK(read_both_orders(base, both, yarn_factor) == 4);
  CHECK(read_both_orders(base, both, theta) == 5e5);
  const Members empty = {{"rope_parameters", scaled}, {"rope_scaling", JsonObject()}};
  CHECK(read_both_orders(base, empty, yarn_factor) == 8);
  const Members none = {{"rope_parameters", scaled}, {"rope_scaling", nullptr}};
  CHECK(read_both_orders(base, none, yarn_factor) == 8);
  // rope_type counts before the other name of its type.
  JsonObject named = yarn(4);
  named["type"] = "linear";
  CHECK(read_both_orders(base, {{"rope_scaling", named}}, yarn_factor) == 4);
  JsonObject typed = yarn(4);
  typed.erase("rope_type");
  typed["type"] = "yarn";
  CHECK(read_both_orders(base, {{"rope_scaling", typed}}, yarn_factor) == 4);

  JsonObject file = base;
  file["rope_parameters"] = JsonObject{{"full_attention", plain}, {"sliding_attention", plain}};
  CHECK(parse_config(dump_json(file)).error().message ==
        "\"rope_parameters\" for each type of layer is not supported");
}

TEST_CASE("the rotated part of a head is at the top or in rope_parameters") {
  const auto rotated = [](const ModelConfig& config) { return config.rotary_dims; };
  const JsonObject base = file_of("LlamaForCausalLM");  // heads of 16 dimensions
  const JsonObject half{{"rope_type", "default"}, {"partial_rotary_factor", 0.5}};
  CHECK(read_both_orders(base, {}, rotated) == 16);
  CHECK(read_both_orders(base, {{"partial_rotary_factor", 0.25}}, rotated) == 4);
  CHECK(read_both_orders(base, {{"rope_parameters", half}}, rotated) == 8);
  CHECK(read_both_orders(base, {{"rope_parameters", half}, {"partial_rotary_factor", 0.25}},
                         rotated) == 4);
}

TEST_CASE("a head's size counts before the quotient of two others, unless it is null") {
  const auto size = [](const ModelConfig& config) { return config.head_dim; };
  const JsonObject base = file_of("Qwen3ForCausalLM");
  CHECK(read_both_orders(base, {}, size) == 16);
  CHECK(read_both_orders(base, {{"head_dim", 32}}, size) == 32);
  CHECK(read_both_orders(base, {{"head_dim", nullptr}}, size) == 16);
}

TEST_CASE("windows have a size, a switch and a list of layers, and all of them count") {
  const auto windows = [](const ModelConfig& config) {
    std::vector<int> all;
    for (const LayerTraits& layer : config.traits) all.push_back(layer.window);
    return all;
  };
  const std::vector<int> none(4), all(4, 128), later{0, 0, 0, 128}, first{128, 0, 0, 0};
  const JsonArray types{"sliding_attention", "full_attention", "full_attention", "full_attention"};
  const std::pair<const char*, Json> size = {"sliding_window", 128};
  const std::pair<const char*, Json> list = {"layer_types", types};
  JsonObject base = file_of("MistralForCausalLM");
  CHECK(read_both_orders(base, {size}, windows) == all);
  CHECK(read_both_orders(base, {size, {"use_sliding_window", false}}, windows) == none);
  CHECK(read_both_orders(base, {size, list}, windows) == first);
  CHECK(read_both_orders(base, {{"sliding_window", nullptr}, list}, windows) == none);
  base = file_of("Qwen2ForCausalLM");  // whose windows must be switched on
  CHECK(read_both_orders(base, {size}, windows) == none);
  CHECK(read_both_orders(base, {size, list, {"use_sliding_window", false}}, windows) == none);
  CHECK(read_both_orders(base, {size, list, {"use_sliding_window", true}}, windows) == first);
  const std::pair<const char*, Json> on = {"use_sliding_window", true};
  CHECK(read_both_orders(base, {size, on, {"max_window_layers", 3}}, windows) == later);
  CHECK(read_both_orders(base, {size, on, {"max_window_layers", 4}}, windows) == none);
  base = with_experts("GptOssForCausalLM", {{"num_local_experts", 8}, {"num_experts_per_tok", 2}});
  CHECK(read_both_orders(base, {size}, windows) == std::vector<int>{128, 0, 128, 0});
}

TEST_CASE("the text model's own tie of its embeddings counts before the wrapper's") {
  const auto tied = [](const ModelConfig& config) { return config.tied_embeddings; };
  for (const bool inner : {false, true}) {
    for (const bool outer : {false, true}) {
      JsonObject text = file_of("Ministral3ForCausalLM");
      const JsonObject base{{"architectures", JsonArray{"Mistral3ForConditionalGeneration"}}};
      CHECK(read_both_orders(base, {{"text_config", text}, {"tie_word_embeddings", outer}}, tied) ==
            outer);
      text["tie_word_embeddings"] = inner;
      CHECK(read_both_orders(base, {{"text_config", text}, {"tie_word_embeddings", outer}}, tied) ==
            inner);
      CHECK(read_both_orders(base, {{"text_config", text}}, tied) == inner);
    }
  }
}

TEST_CASE("the type of elements in a config does not count, only that of each tensor") {
  const auto hidden = [](const ModelConfig& config) { return config.hidden; };
  const JsonObject base = file_of("LlamaForCausalLM");
  CHECK(read_both_orders(base, {{"torch_dtype", "float32"}, {"dtype", "bfloat16"}}, hidden) == 128);
}
