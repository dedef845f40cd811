#include "model/load/model_summary.h"

#include <doctest/doctest.h>

#include <string>

#include "json/json.h"
#include "model/load/open_model.h"
#include "model/load/shape_model.h"
#include "model/shapes/known_shapes.h"
#include "weights/random/random_source.h"

namespace lockstep {
namespace {

constexpr std::string_view kSmallExperts = R"({"architectures": ["Glm4MoeForCausalLM"],
  "vocab_size": 1000, "hidden_size": 64, "intermediate_size": 256, "moe_intermediate_size": 128,
  "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32,
  "n_routed_experts": 8, "n_shared_experts": 1, "num_experts_per_tok": 2,
  "first_k_dense_replace": 1, "max_position_embeddings": 512})";

ModelConfig config_of_text(std::string_view text) {
  auto config = parse_config(text);
  REQUIRE_MESSAGE(config.ok(), config.error().message);
  return config.value();
}

ModelSummary summary_of(const ModelConfig& config, std::string_view format) {
  const auto source = open_random_source(format, random_tensors(config));
  REQUIRE(source.ok());
  auto summary = summarise(config, source.value().get());
  REQUIRE_MESSAGE(summary.ok(), summary.error().message);
  return summary.value();
}

const ClassSummary& find_class(const ModelSummary& summary, WeightClass which) {
  for (const ClassSummary& entry : summary.classes) {
    if (entry.weight_class == which) return entry;
  }
  FAIL("the model has no " << std::string(weight_class_name(which)));
  return summary.classes.front();
}

TEST_CASE("each class of weights has its parameters, bits and formats") {
  const ModelSummary summary = summary_of(config_of_text(kSmallExperts), "mlx4");
  const ClassSummary& experts = find_class(summary, WeightClass::kExperts);
  CHECK(experts.count.parameters == uint64_t{3} * 8 * 3 * 64 * 128);
  CHECK(experts.count.token_parameters == uint64_t{3} * 2 * 3 * 64 * 128);
  CHECK(experts.count.bits() == 4.5);
  CHECK(experts.formats == std::vector<std::string>{"MLX 4 bit, group 64"});
  const ClassSummary& embedding = find_class(summary, WeightClass::kEmbedding);
  CHECK(embedding.count.parameters == 64'000);
  CHECK(embedding.count.token_parameters == 0);
  CHECK(find_class(summary, WeightClass::kHead).count.token_parameters == 64'000);
  CHECK(find_class(summary, WeightClass::kRouter).formats == std::vector<std::string>{"BF16"});
  CHECK(find_class(summary, WeightClass::kFeedForward).count.parameters == 3 * 64 * 256);
}

TEST_CASE("the total is the sum of the classes and matches the source's file sizes") {
  const ModelConfig config = config_of_text(kSmallExperts);
  const auto source = open_random_source("q8_0", random_tensors(config));
  REQUIRE(source.ok());
  const auto summary = summarise(config, source.value().get());
  REQUIRE(summary.ok());
  WeightCount sum;
  for (const ClassSummary& entry : summary.value().classes) sum.add(entry.count);
  CHECK(sum.bytes == summary.value().total.bytes);
  CHECK(sum.parameters == summary.value().total.parameters);
  CHECK(summary.value().total.bytes == source.value()->file_bytes());
}

TEST_CASE("matrices whose rows are interleaved in one tensor share its bytes") {
  const auto opened = open_model(LOCKSTEP_SOURCE_DIR "/tests/data/golden/gptoss-mxfp4");
  REQUIRE(opened.ok());
  const auto summary = summarise(opened.value().config, opened.value().source.get());
  REQUIRE(summary.ok());
  CHECK(find_class(summary.value(), WeightClass::kExperts).count.bits() == 4.25);  // 4 + 8 / 32
  CHECK(summary.value().total.bytes < opened.value().source->file_bytes());
}

TEST_CASE("a layer with experts counts the weights that a token uses") {
  const ModelSummary summary = summary_of(config_of_text(kSmallExperts), "bf16");
  REQUIRE(summary.layers.size() == 4);
  CHECK(summary.layers[0].token_bytes == summary.layers[0].bytes);
  CHECK(summary.layers[1].token_bytes < summary.layers[1].bytes);
  CHECK(summary.layers[1].bytes == summary.layers[3].bytes);
}

TEST_CASE("a tied embedding is read for each token") {
  const auto config = read_shape_config("qwen3-0.6b");
  REQUIRE(config.ok());
  const auto summary = summarise(config.value(), nullptr);
  REQUIRE(summary.ok());
  CHECK(summary.value().total.token_parameters == summary.value().total.parameters);
  CHECK(summary.value().total.bytes == 0);
}

TEST_CASE("a source without one of the tensors is an error that names it") {
  const ModelConfig config = config_of_text(kSmallExperts);
  std::vector<RandomTensor> tensors = random_tensors(config);
  tensors.pop_back();
  const auto source = open_random_source("bf16", tensors);
  REQUIRE(source.ok());
  const auto summary = summarise(config, source.value().get());
  REQUIRE_FALSE(summary.ok());
  CHECK(summary.error().code == ErrorCode::kNotFound);
  CHECK(summary.error().message.find("shared_experts.down_proj") != std::string::npos);
}

TEST_CASE("state comes in pages: keys and values, or the latent, in the bytes of their kind") {
  const auto llama = read_shape_config("llama-3.2-1b");
  REQUIRE(llama.ok());
  const uint64_t numbers = uint64_t{2} * 16 * 8 * 64;  // of a token
  CHECK(state_bytes(llama.value(), KvKind::kF32, 1024) == 1024 * numbers * 4);
  CHECK(state_bytes(llama.value(), KvKind::kF16, 1024) == 1024 * numbers * 2);
  CHECK(state_bytes(llama.value(), KvKind::kBF16, 1) == 64 * numbers * 2);
  CHECK(state_bytes(llama.value(), KvKind::kQ8, 1024) == 1024 * (numbers + numbers / 32 * 2));
  CHECK(state_bytes(llama.value(), KvKind::kF32, 0) == 0);
  const auto deepseek = read_shape_config("deepseek-v3.1");
  REQUIRE(deepseek.ok());
  const uint64_t latents = uint64_t{1024} * 2 * 61 * (512 + 64);
  CHECK(state_bytes(deepseek.value(), KvKind::kF32, 1024) == latents * 4);
  CHECK(state_bytes(deepseek.value(), KvKind::kQ8, 1024) == latents + latents / 32 * 2);
}

TEST_CASE("layers with a window keep what is within their reach, in whole pages") {
  const auto model = read_shape_config("gpt-oss-20b");  // 12 of 24 layers, 128 positions
  REQUIRE(model.ok());
  CHECK(model.value().reach() == 128);
  const uint64_t numbers = uint64_t{2} * 12 * 8 * 64;  // of a token in half of the layers
  CHECK(state_bytes(model.value(), KvKind::kF16, 64) == 2 * 64 * numbers * 2);
  CHECK(state_bytes(model.value(), KvKind::kF16, 8192) == (8192 + 3 * 64) * numbers * 2);
  CHECK(state_bytes_of_pages(model.value(), KvKind::kF16, 10, 7) == 17 * 64 * numbers * 2);
  const auto v4 = read_shape_config("deepseek-v4-flash");  // 128 positions, and pools as long
  REQUIRE(v4.ok());
  CHECK(v4.value().reach() == 128);
  const double token = static_cast<double>(state_bytes_of_pages(v4.value(), KvKind::kF16, 1, 1) -
                                           state_bytes_of_pages(v4.value(), KvKind::kF16, 1, 0));
  CHECK(token / 64 > 190'000);  // of the bytes of a token that are in window pages
  CHECK(static_cast<double>(state_bytes_of_pages(v4.value(), KvKind::kF16, 1, 0)) / 64 < 15'000);
  const auto recurrent = read_shape_config("qwen3.8-27b");
  REQUIRE(recurrent.ok());
  CHECK(recurrent.value().reach() == 0);
}

TEST_CASE("a format has the name that model cards use") {
  StoredMatrix matrix;
  matrix.scale_type = DType::kBF16;
  CHECK(stored_format_name(matrix) == "BF16");
  matrix.format = StoredFormat::kFp8;
  matrix.group = matrix.row_group = 128;
  CHECK(stored_format_name(matrix) == "FP8 E4M3, scales by 128 x 128");
  matrix.group = matrix.row_group = 0;
  CHECK(stored_format_name(matrix) == "FP8 E4M3, one scale");
  matrix.format = StoredFormat::kFp4;
  matrix.group = 32;
  matrix.scale_type = DType::kF8E8M0;
  CHECK(stored_format_name(matrix) == "MXFP4");
  matrix.format = StoredFormat::kGguf;
  matrix.gguf_type = 12;
  CHECK(stored_format_name(matrix) == "Q4_K");
}

TEST_CASE("a shape model's text says shape, format and layers") {
  const ShapeModel model{.shape = "dir?x/config.json", .format = "mlx4", .layers = 3};
  const std::string text = shape_model_text(model);
  CHECK(is_shape_model(text));
  const auto parsed = parse_shape_model(text);
  REQUIRE(parsed.ok());
  CHECK(parsed.value().shape == model.shape);
  CHECK(parsed.value().format == "mlx4");
  CHECK(parsed.value().layers == 3);
  const auto plain = parse_shape_model("shape:qwen3-0.6b");
  REQUIRE(plain.ok());
  CHECK(plain.value().format == "bf16");
  CHECK(plain.value().layers == 0);
  for (const std::string_view bad : {"qwen3-0.6b", "shape:", "shape:x?layers=-1", "shape:x?layers=",
                                     "shape:x?layers=2b", "shape:x?bits", "shape:x?bits=4"}) {
    CAPTURE(bad);
    CHECK_FALSE(parse_shape_model(bad).ok());
  }
}

TEST_CASE("a subset of a model's layers takes the most common ones") {
  const auto deepseek = read_shape_config("deepseek-v3.1");
  REQUIRE(deepseek.ok());
  CHECK(common_layers_have_experts(deepseek.value()));
  const auto two = with_layers(deepseek.value(), 2);
  REQUIRE(two.ok());
  CHECK(two.value().layers == 2);
  REQUIRE(two.value().traits.size() == 2);
  CHECK((two.value().layer(0).has_experts && two.value().layer(1).has_experts));
  CHECK(with_layers(deepseek.value(), 58).ok());
  CHECK_FALSE(with_layers(deepseek.value(), 59).ok());
  CHECK_FALSE(with_layers(deepseek.value(), 0).ok());
  JsonObject recurrent = parse_json(find_known_shape("qwen3.5-27b")->config).value().as_object();
  recurrent["num_hidden_layers"] = 6;  // the last two are recurrent
  const auto qwen = with_layers(parse_config(dump_json(recurrent)).value(), 1);
  REQUIRE(qwen.ok());
  CHECK_FALSE(qwen.value().layer(0).is_recurrent());
  const auto gemma = with_layers(read_shape_config("gemma-4-e2b").value(), 15);
  REQUIRE(gemma.ok());
  for (const LayerTraits& layer : gemma.value().traits) CHECK(layer.has_state());
  CHECK_FALSE(with_layers(read_shape_config("gemma-4-e2b").value(), 16).ok());
}

TEST_CASE("a shape model opens with random weights for all of its tensors") {
  const auto model = open_model("shape:llama-3.2-1b?format=q4_k&layers=2");
  REQUIRE_MESSAGE(model.ok(), model.error().message);
  CHECK(model.value().config.layers == 2);
  const auto summary = summarise(model.value().config, model.value().source.get());
  REQUIRE_MESSAGE(summary.ok(), summary.error().message);
  CHECK(summary.value().total.bits() == doctest::Approx(4.5).epsilon(0.001));
  const auto unknown = open_model("shape:no-such-model");
  REQUIRE_FALSE(unknown.ok());
  CHECK(unknown.error().code == ErrorCode::kNotFound);
  CHECK(unknown.error().message.find("kimi-k2") != std::string::npos);
}

}  // namespace
}  // namespace lockstep
