#include "weights/gguf/gguf_source.h"

#include <doctest/doctest.h>

#include <cstring>
#include <numeric>
#include <string>

#include "support/gguf_writer.h"
#include "support/temporary_folder.h"
#include "tensor/half.h"

using namespace lockstep;

namespace {

using Source = std::shared_ptr<const WeightSource>;

constexpr uint32_t kF32 = 0, kF16 = 1, kQ8_0 = 8, kIq2Xxs = 16, kBf16 = 30, kMxfp4 = 39;

GgufWriter writer_of(const char* architecture) {
  GgufWriter writer;
  writer.string("general.architecture", architecture);
  writer.integer(std::string(architecture) + ".attention.head_count", 4);
  writer.integer(std::string(architecture) + ".attention.head_count_kv", 2);
  return writer;
}

// 0, 1, 2...
std::vector<float> counted(size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 0.0f);
  return values;
}

Result<Source> source_of(const std::string& file) {
  auto model = GgufModel::parse(std::as_bytes(std::span(file)));
  if (!model.ok()) return model.error();
  return make_gguf_source(std::move(model.value()));
}

std::string error_of_matrix(const std::string& file, const MatrixRequest& request) {
  const auto source = source_of(file);
  if (!source.ok()) return source.error().message;
  const auto matrix = source.value()->matrix(request);
  return matrix.ok() ? "no error" : matrix.error().message;
}

float element(const StoredMatrix& matrix, int row, int column) {
  const size_t at = static_cast<size_t>(matrix.stored_row(row)) * matrix.row_bytes +
                    static_cast<size_t>(column) * sizeof(float);
  float value = 0;
  std::memcpy(&value, matrix.codes.data() + at, sizeof(value));
  return value;
}

GgufWriter part_of(uint16_t index, uint16_t count, int32_t tensors) {
  GgufWriter writer = index == 0 ? writer_of("qwen3") : GgufWriter();
  writer.value("split.no", GgufWriter::kUint16, GgufWriter::raw(index));
  writer.value("split.count", GgufWriter::kUint16, GgufWriter::raw(count));
  writer.value("split.tensors.count", GgufWriter::kInt32, GgufWriter::raw(tensors));
  return writer;
}

}  // namespace

TEST_CASE("the rows of interleaved query and key heads are found in their own order") {
  // 4 heads of 4 rows and 2 of them: Hugging Face's rows 0 1 2 3 of a head are stored as 0 2 1 3.
  const std::string file = writer_of("llama")
                               .floats("blk.0.attn_q.weight", {2, 16}, counted(32))
                               .floats("blk.0.attn_k.weight", {2, 8}, counted(16))
                               .floats("blk.0.attn_v.weight", {2, 8}, counted(16))
                               .file();
  const Source source = source_of(file).value();
  const auto query = source->matrix({"model.layers.0.self_attn.q_proj.weight", -1, 16, 2});
  REQUIRE(query.ok());
  CHECK(query.value().format == StoredFormat::kPlain);
  const std::vector<int32_t> expected{0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15};
  CHECK(std::vector(query.value().row_map.begin(), query.value().row_map.end()) == expected);
  CHECK(element(query.value(), 1, 0) == 4);
  CHECK(element(query.value(), 2, 1) == 3);
  const auto key = source->matrix({"model.layers.0.self_attn.k_proj.weight", -1, 8, 2});
  REQUIRE(key.ok());
  REQUIRE(key.value().row_map.size() == 8);
  CHECK(element(key.value(), 5, 0) == 12);
  const auto value = source->matrix({"model.layers.0.self_attn.v_proj.weight", -1, 8, 2});
  REQUIRE(value.ok());
  CHECK(value.value().row_map.empty());
}

TEST_CASE("a GGUF file is known by its first bytes if its name does not end in .gguf") {
  const TemporaryFolder folder;
  const std::string file = writer_of("qwen3").floats("output_norm.weight", {4}, counted(4)).file();
  const auto blob = open_weight_source(folder.write("sha256-1d2e", file));
  REQUIRE_MESSAGE(blob.ok(), (blob.ok() ? "" : blob.error().message));
  CHECK(blob.value()->has("model.norm.weight"));
}

TEST_CASE("a head of six rows keeps its halves apart") {
  const std::string file = GgufWriter()
                               .string("general.architecture", "mistral3")
                               .integer("mistral3.attention.head_count", 1)
                               .floats("blk.3.attn_q.weight", {1, 6}, counted(6))
                               .file();
  const Source source = source_of(file).value();
  const auto query = source->matrix({"model.layers.3.self_attn.q_proj.weight", -1, 6, 1});
  REQUIRE(query.ok());
  std::vector<float> values;
  for (int row = 0; row < 6; ++row) values.push_back(element(query.value(), row, 0));
  CHECK(values == std::vector<float>{0, 2, 4, 1, 3, 5});
}

TEST_CASE("models whose heads are not interleaved have no row map") {
  for (const char* architecture : {"qwen2", "qwen3", "qwen3moe", "gpt-oss", "glm4moe"}) {
    const std::string file = writer_of(architecture)
                                 .floats("blk.0.attn_q.weight", {2, 16}, counted(32))
                                 .floats("blk.0.attn_q.bias", {16}, counted(16))
                                 .file();
    const Source source = source_of(file).value();
    const auto query = source->matrix({"model.layers.0.self_attn.q_proj.weight", -1, 16, 2});
    REQUIRE(query.ok());
    CHECK(query.value().row_map.empty());
    CHECK(source->vector("model.layers.0.self_attn.q_proj.bias", -1, 16).ok());
  }
}

TEST_CASE("every weight of a dense model is found by Hugging Face's name") {
  GgufWriter writer = writer_of("qwen3");
  const std::vector<std::pair<const char*, const char*>> matrices = {
      {"model.embed_tokens.weight", "token_embd.weight"},
      {"lm_head.weight", "output.weight"},
      {"model.layers.12.self_attn.q_proj.weight", "blk.12.attn_q.weight"},
      {"model.layers.12.self_attn.k_proj.weight", "blk.12.attn_k.weight"},
      {"model.layers.12.self_attn.v_proj.weight", "blk.12.attn_v.weight"},
      {"model.layers.12.self_attn.o_proj.weight", "blk.12.attn_output.weight"},
      {"model.layers.12.mlp.gate_proj.weight", "blk.12.ffn_gate.weight"},
      {"model.layers.12.mlp.up_proj.weight", "blk.12.ffn_up.weight"},
      {"model.layers.12.mlp.down_proj.weight", "blk.12.ffn_down.weight"}};
  const std::vector<std::pair<const char*, const char*>> vectors = {
      {"model.norm.weight", "output_norm.weight"},
      {"model.layers.12.input_layernorm.weight", "blk.12.attn_norm.weight"},
      {"model.layers.12.post_attention_layernorm.weight", "blk.12.ffn_norm.weight"},
      {"model.layers.12.self_attn.q_norm.weight", "blk.12.attn_q_norm.weight"},
      {"model.layers.12.self_attn.k_norm.weight", "blk.12.attn_k_norm.weight"}};
  float mark = 0;
  for (const auto& [name, tensor] : matrices) writer.floats(tensor, {1, 2}, {++mark, 0});
  for (const auto& [name, tensor] : vectors) writer.floats(tensor, {1}, {++mark});
  const std::string file = writer.file();
  const Source source = source_of(file).value();
  mark = 0;
  for (const auto& [name, tensor] : matrices) {
    CAPTURE(name);
    const auto matrix = source->matrix({name, -1, 2, 1});
    REQUIRE(matrix.ok());
    CHECK(element(matrix.value(), 0, 0) == ++mark);
    CHECK(source->has(name));
  }
  for (const auto& [name, tensor] : vectors) {
    CAPTURE(name);
    const auto vector = source->vector(name, -1, 1);
    REQUIRE(vector.ok());
    float value = 0;
    std::memcpy(&value, vector.value().bytes.data(), sizeof(value));
    CHECK(value == ++mark);
    CHECK(source->has(name));
  }
  CHECK(source->file_bytes() == file.size());
}

TEST_CASE("an unknown name is not found, whatever its form") {
  const std::string file =
      writer_of("qwen3").floats("blk.0.attn_q.weight", {1, 4}, counted(4)).file();
  const Source source = source_of(file).value();
  for (const char* name :
       {"", "model.layers.", "model.layers.x.self_attn.q_proj.weight", "model.layers.0",
        "model.layers.0.", "model.layers.0.self_attn.q_proj",
        "model.layers.0.self_attn.q_proj.bias", "model.layers.1.self_attn.q_proj.weight",
        "model.layers.-1.self_attn.q_proj.weight",
        "model.layers.99999999999.self_attn.q_proj.weight", "blk.0.attn_q.weight",
        "model.layers.0.mlp.experts.0.gate_proj.weight"}) {
    CAPTURE(name);
    CHECK_FALSE(source->has(name));
    const auto matrix = source->matrix({name, -1, 4, 1});
    REQUIRE_FALSE(matrix.ok());
    CHECK(matrix.error().code == ErrorCode::kNotFound);
    CHECK(matrix.error().message == std::string("the checkpoint has no tensor ") + name);
    CHECK(source->vector(name, -1, 4).error().code == ErrorCode::kNotFound);
  }
}

TEST_CASE("norms and biases may be of any plain type, matrices of any supported one") {
  const std::string file = writer_of("qwen2")
                               .tensor_with("output_norm.weight", {2}, kF16, "abcd")
                               .tensor_with("blk.0.attn_norm.weight", {2}, kBf16, "efgh")
                               .tensor_with("output.weight", {64, 2}, kQ8_0, std::string(136, 'q'))
                               .tensor_with("token_embd.weight", {1, 2}, kBf16, "ijkl")
                               .file();
  const Source source = source_of(file).value();
  const auto half = source->vector("model.norm.weight", -1, 2);
  REQUIRE(half.ok());
  CHECK(half.value().dtype == DType::kF16);
  CHECK(half.value().bytes.size() == 4);
  CHECK(source->vector("model.layers.0.input_layernorm.weight", -1, 2).value().dtype ==
        DType::kBF16);
  const auto blocks = source->matrix({"lm_head.weight", -1, 2, 64});
  REQUIRE(blocks.ok());
  CHECK(blocks.value().format == StoredFormat::kGguf);
  CHECK(blocks.value().gguf_type == kQ8_0);
  CHECK(blocks.value().row_bytes == 68);
  CHECK(blocks.value().codes.size() == 136);
  const auto plain = source->matrix({"model.embed_tokens.weight", -1, 2, 1});
  REQUIRE(plain.ok());
  CHECK(plain.value().format == StoredFormat::kPlain);
  CHECK(plain.value().scale_type == DType::kBF16);
}

TEST_CASE("a GGUF file is known by its first bytes, whatever its name") {
  const TemporaryFolder folder;
  const auto file = writer_of("llama").floats("token_embd.weight", {1, 2}, {7, 8}).file();
  for (const char* name : {"m.gguf", "sha256-0123"}) {
    const auto source = open_weight_source(folder.write(name, file));
    REQUIRE_MESSAGE(source.ok(), source.error().message);
    const auto matrix = source.value()->matrix({"model.embed_tokens.weight", -1, 2, 1});
    REQUIRE(matrix.ok());
    CHECK(matrix.value().is_mapped_file);
  }
}

TEST_CASE("a model may be split, and any part opens all of them") {
  const TemporaryFolder folder;
  folder.write("m-00001-of-00003.gguf", part_of(0, 3, 2).file());
  const auto second = folder.write(
      "m-00002-of-00003.gguf", part_of(1, 3, 2).floats("token_embd.weight", {1, 2}, {7, 8}).file());
  folder.write("m-00003-of-00003.gguf",
               part_of(2, 3, 2).floats("output_norm.weight", {1}, {9}).file());
  for (const int part : {1, 2, 3}) {
    const auto path = second.parent_path() / ("m-0000" + std::to_string(part) + "-of-00003.gguf");
    const auto source = open_gguf_source(path);
    REQUIRE_MESSAGE(source.ok(), source.error().message);
    const auto matrix = source.value()->matrix({"model.embed_tokens.weight", -1, 2, 1});
    REQUIRE(matrix.ok());
    CHECK(element(matrix.value(), 1, 0) == 8);
    CHECK(source.value()->has("model.norm.weight"));
    CHECK(gguf_first_part(path).filename() == "m-00001-of-00003.gguf");
    CHECK(gguf_model_name(path) == "m");
  }
}

TEST_CASE("parts that do not fit together are named") {
  const TemporaryFolder folder;
  const auto first = folder.write("m-00001-of-00002.gguf", part_of(0, 2, 1).file());
  const auto missing = open_gguf_source(first);
  REQUIRE_FALSE(missing.ok());
  CHECK(missing.error().code == ErrorCode::kNotFound);
  CHECK(missing.error().message.find("part 2 of 2 of the model is missing") == 0);

  const auto second = folder.write("m-00002-of-00002.gguf", part_of(0, 2, 1).file());
  const auto repeated = open_gguf_source(first);
  REQUIRE_FALSE(repeated.ok());
  CHECK(repeated.error().code == ErrorCode::kCorrupt);
  CHECK(repeated.error().message ==
        second.string() + " is part 1 of 2, which its name does not say");

  folder.write("m-00002-of-00002.gguf", part_of(1, 2, 1).file());
  const auto few = open_gguf_source(first);
  REQUIRE_FALSE(few.ok());
  CHECK(few.error().message == first.string() + ": the parts hold 0 tensors, not 1 as they say");

  const auto renamed = folder.write("other.gguf", part_of(1, 2, 1).file());
  const auto lost = open_gguf_source(renamed);
  REQUIRE_FALSE(lost.ok());
  CHECK(lost.error().message ==
        renamed.string() +
            " is part 2 of 2 of a model; it must be named NAME-00002-of-00002.gguf so "
            "that the others can be found");

  const auto absurd = folder.write("absurd.gguf", part_of(3, 2, 1).file());
  CHECK(open_gguf_source(absurd).error().code == ErrorCode::kCorrupt);
  folder.write("m-00001-of-00002.gguf",
               part_of(0, 2, 2).floats("output_norm.weight", {1}, {1}).file());
  folder.write("m-00002-of-00002.gguf",
               part_of(1, 2, 2).floats("output_norm.weight", {1}, {1}).file());
  CHECK(open_gguf_source(first).error().message ==
        first.string() + ": two parts of the model have a tensor output_norm.weight");
}

TEST_CASE("an unsupported type is named together with the supported ones") {
  const MatrixRequest request{"lm_head.weight", -1, 2, 256};
  CHECK(
      error_of_matrix(GgufWriter().string("general.architecture", "mamba").file(), request) ==
      "the architecture \"mamba\" is unknown here; known are: llama, mistral3, qwen2, qwen3, "
      "qwen3moe, deepseek2, deepseek32, deepseek4, gpt-oss, glm4moe, glm-dsa, gemma4, minimax-m2, "
      "kimi-linear, qwen3next, qwen35, qwen35moe");
  CHECK(error_of_matrix(GgufWriter().file(), request) ==
        "the GGUF value general.architecture is missing");
  CHECK(error_of_matrix(writer_of("qwen3")
                            .tensor_with("output.weight", {256, 2}, kIq2Xxs, std::string(132, ' '))
                            .file(),
                        request) ==
        "tensor output.weight has the type IQ2_XXS; supported are: F32, F16, BF16, Q4_0, Q4_1, "
        "Q5_0, Q5_1, Q8_0, Q2_K, Q3_K, Q4_K, Q5_K, Q6_K, IQ4_NL, IQ4_XS, MXFP4");
  CHECK(
      error_of_matrix(writer_of("qwen3").tensor("output.weight", {256, 2}, 77, 0).file(32), request)
          .find("tensor output.weight has the type 77; supported") == 0);
  const std::string quantised_norm =
      writer_of("qwen3")
          .tensor_with("output_norm.weight", {32}, kQ8_0, std::string(34, ' '))
          .file();
  CHECK(source_of(quantised_norm).value()->vector("model.norm.weight", -1, 32).error().message ==
        "tensor output_norm.weight has the type Q8_0; supported are: F32, F16, BF16");
  const std::string scaled = writer_of("qwen3")
                                 .floats("blk.0.attn_q.weight", {1, 2}, {1, 2})
                                 .floats("blk.0.attn_q.scale", {1}, {3})
                                 .file();
  CHECK(error_of_matrix(scaled, {"model.layers.0.self_attn.q_proj.weight", -1, 2, 1}) ==
        "tensor blk.0.attn_q.weight has a scale of its own, blk.0.attn_q.scale, which is not "
        "supported");
}

TEST_CASE("a tensor of another shape than asked for is an error that shows both") {
  const std::string file = writer_of("qwen3")
                               .floats("output.weight", {2, 3}, counted(6))
                               .floats("output_norm.weight", {2, 1, 1}, counted(2))
                               .file();
  CHECK(error_of_matrix(file, {"lm_head.weight", -1, 2, 3}) ==
        "tensor output.weight has the shape [3, 2], but [2, 3] is asked for");
  const Source source = source_of(file).value();
  CHECK(source->matrix({"lm_head.weight", -1, 3, 2}).ok());
  CHECK(source->vector("model.norm.weight", -1, 2).ok());
  CHECK(source->vector("model.norm.weight", -1, 3).error().code == ErrorCode::kCorrupt);
  CHECK(source->vector("lm_head.weight", -1, 2).error().code == ErrorCode::kCorrupt);
}

TEST_CASE("an unknown number of heads is refused when the file is opened") {
  CHECK(error_of_matrix(
            writer_of("llama").floats("blk.0.attn_q.weight", {1, 12}, counted(12)).file(), {}) ==
        "tensor blk.0.attn_q.weight has 12 rows, which 4 heads cannot share");
  CHECK(error_of_matrix(GgufWriter().string("general.architecture", "llama").file(), {}) ==
        "the GGUF value llama.attention.head_count must be positive");
  const std::string with_bias =
      writer_of("llama").floats("blk.0.attn_q.bias", {16}, counted(16)).file();
  const auto bias =
      source_of(with_bias).value()->vector("model.layers.0.self_attn.q_proj.bias", -1, 16);
  REQUIRE_FALSE(bias.ok());
  CHECK(bias.error().code == ErrorCode::kUnsupported);
}

TEST_CASE("experts are stored in stacks, by their number") {
  const std::string file =
      writer_of("gpt-oss")
          .floats("blk.1.ffn_gate_exps.weight", {2, 3, 4}, counted(24))
          .tensor_with("blk.1.ffn_up_exps.weight", {32, 2, 2}, kMxfp4, std::string(68, 'm'))
          .floats("blk.1.ffn_down_exps.bias", {3, 4}, counted(12))
          .floats("blk.1.ffn_gate_inp.weight", {1, 4}, counted(4))
          .floats("blk.1.ffn_gate_inp.bias", {4}, counted(4))
          .floats("blk.1.attn_sinks.weight", {4}, counted(4))
          .floats("blk.1.post_attention_norm.weight", {2}, counted(2))
          .floats("blk.1.attn_output.bias", {2}, counted(2))
          .file();
  const Source source = source_of(file).value();
  const auto gate = source->matrix({"model.layers.1.mlp.experts.2.gate_proj.weight", 2, 3, 2});
  REQUIRE(gate.ok());
  CHECK(element(gate.value(), 0, 0) == 12);
  CHECK(element(gate.value(), 2, 1) == 17);
  const auto up = source->matrix({"model.layers.1.mlp.experts.1.up_proj.weight", 1, 2, 32});
  REQUIRE(up.ok());
  CHECK(up.value().gguf_type == kMxfp4);
  CHECK(up.value().codes.size() == 34);
  const auto bias = source->vector("model.layers.1.mlp.experts.3.down_proj.bias", 3, 3);
  REQUIRE(bias.ok());
  float value = 0;
  std::memcpy(&value, bias.value().bytes.data(), sizeof(value));
  CHECK(value == 9);
  CHECK(source->has("model.layers.1.mlp.experts.3.gate_proj.weight", 3));
  CHECK_FALSE(source->has("model.layers.1.mlp.experts.4.gate_proj.weight", 4));
  const auto beyond = source->matrix({"model.layers.1.mlp.experts.4.gate_proj.weight", 4, 3, 2});
  REQUIRE_FALSE(beyond.ok());
  CHECK(beyond.error().message ==
        "tensor blk.1.ffn_gate_exps.weight has the shape [4, 3, 2], but [3, 2] at place 4 of a "
        "stack is asked for");
  CHECK(source->matrix({"model.layers.1.mlp.router.weight", -1, 4, 1}).ok());
  CHECK(source->vector("model.layers.1.mlp.router.bias", -1, 4).ok());
  CHECK(source->vector("model.layers.1.self_attn.sinks", -1, 4).ok());
  CHECK(source->vector("model.layers.1.post_attention_layernorm.weight", -1, 2).ok());
  CHECK(source->vector("model.layers.1.self_attn.o_proj.bias", -1, 2).ok());
}

TEST_CASE("latent attention is stored whole or split into heads") {
  const std::string old_file = GgufWriter()
                                   .string("general.architecture", "deepseek2")
                                   .floats("blk.0.attn_kv_b.weight", {2, 10}, counted(20))
                                   .floats("blk.0.attn_q_a.weight", {1, 2}, counted(2))
                                   .floats("blk.0.attn_q_a_norm.weight", {2}, counted(2))
                                   .floats("blk.0.attn_q_b.weight", {2, 2}, counted(4))
                                   .floats("blk.0.attn_kv_a_mqa.weight", {1, 3}, counted(3))
                                   .floats("blk.0.attn_kv_a_norm.weight", {2}, counted(2))
                                   .floats("blk.1.exp_probs_b.bias", {4}, counted(4))
                                   .floats("blk.1.ffn_gate_shexp.weight", {1, 2}, counted(2))
                                   .file();
  const Source whole = source_of(old_file).value();
  CHECK(whole->matrix({"model.layers.0.self_attn.kv_b_proj.weight", -1, 10, 2}).ok());
  CHECK(whole->matrix({"model.layers.0.self_attn.q_a_proj.weight", -1, 2, 1}).ok());
  CHECK(whole->vector("model.layers.0.self_attn.q_a_layernorm.weight", -1, 2).ok());
  CHECK(whole->matrix({"model.layers.0.self_attn.q_b_proj.weight", -1, 2, 2}).ok());
  CHECK(whole->matrix({"model.layers.0.self_attn.kv_a_proj_with_mqa.weight", -1, 3, 1}).ok());
  CHECK(whole->vector("model.layers.0.self_attn.kv_a_layernorm.weight", -1, 2).ok());
  CHECK(whole->vector("model.layers.1.mlp.gate.e_score_correction_bias", -1, 4).ok());
  CHECK(whole->matrix({"model.layers.1.mlp.shared_experts.gate_proj.weight", -1, 2, 1}).ok());
  CHECK_FALSE(whole->has("model.layers.0.self_attn.embed_q.weight", 0));

  // 2 heads, kv_rank 2, nope 3, value 2.
  const std::string new_file = GgufWriter()
                                   .string("general.architecture", "deepseek2")
                                   .floats("blk.0.attn_k_b.weight", {3, 2, 2}, counted(12))
                                   .floats("blk.0.attn_v_b.weight", {2, 2, 2}, counted(8))
                                   .file();
  const Source cut = source_of(new_file).value();
  CHECK(cut->has("model.layers.0.self_attn.embed_q.weight", 1));
  CHECK_FALSE(cut->has("model.layers.0.self_attn.embed_q.weight", 2));
  CHECK_FALSE(cut->has("model.layers.0.self_attn.kv_b_proj.weight"));
  const auto query = cut->matrix({"model.layers.0.self_attn.embed_q.weight", 1, 2, 3});
  REQUIRE(query.ok());
  CHECK(element(query.value(), 1, 0) == 9);
  const auto value = cut->matrix({"model.layers.0.self_attn.unembed_out.weight", 1, 2, 2});
  REQUIRE(value.ok());
  CHECK(element(value.value(), 1, 1) == 7);
}

namespace {

// Two key heads of 1 with two value heads of `value_dim` each.
GgufWriter delta_writer(const std::string& architecture, uint32_t value_dim) {
  GgufWriter writer = writer_of(architecture.c_str());
  writer.integer(architecture + ".ssm.group_count", 2);
  writer.integer(architecture + ".ssm.time_step_rank", 4);
  writer.integer(architecture + ".ssm.state_size", 1);
  writer.integer(architecture + ".ssm.inner_size", 4 * value_dim);
  return writer;
}

const std::string kDelta = "model.layers.0.linear_attn.";

}  // namespace

TEST_CASE("value heads of Qwen 3.5 are found in the order of their key heads") {
  // Stored are the first value heads of both key heads, then the second ones.
  const std::string file = delta_writer("qwen35", 1)
                               .floats("blk.0.attn_qkv.weight", {1, 8}, counted(8))
                               .floats("blk.0.ssm_beta.weight", {1, 4}, counted(4))
                               .floats("blk.0.ssm_out.weight", {4, 1}, counted(4))
                               .floats("blk.0.ssm_conv1d.weight", {2, 8}, counted(16))
                               .floats("blk.0.ssm_a", {4}, {-1, -2, -3, -4})
                               .file();
  const Source source = source_of(file).value();
  const StoredMatrix inputs = source->matrix({kDelta + "in_proj_qkv.weight", -1, 8, 1}).value();
  for (const auto& [row, stored] : {std::pair{0, 0}, {3, 3}, {4, 4}, {5, 6}, {6, 5}, {7, 7}}) {
    CHECK(inputs.stored_row(row) == stored);
  }
  const StoredMatrix rates = source->matrix({kDelta + "in_proj_b.weight", -1, 4, 1}).value();
  CHECK(rates.stored_row(1) == 2);
  const StoredMatrix out = source->matrix({kDelta + "out_proj.weight", -1, 1, 4}).value();
  CHECK(out.stored_column(1) == 2);
  CHECK(out.stored_column(3) == 3);
  const StoredVector decays = source->vector(kDelta + "A_log", -1, 4).value();
  CHECK(decays.is_minus_exponential);
  CHECK(load_element(decays.bytes.data(), decays.dtype, 1) == -3);
  const StoredVector taps = source->vector(kDelta + "conv1d.weight", -1, 16).value();
  CHECK(load_element(taps.bytes.data(), taps.dtype, 10) == 12);
}

TEST_CASE("rates and decays of Qwen3-Next are found in one matrix") {
  const std::string file =
      delta_writer("qwen3next", 1).floats("blk.0.ssm_ba.weight", {1, 8}, counted(8)).file();
  const Source source = source_of(file).value();
  const StoredMatrix rates = source->matrix({kDelta + "in_proj_b.weight", -1, 4, 1}).value();
  const StoredMatrix decays = source->matrix({kDelta + "in_proj_a.weight", -1, 4, 1}).value();
  for (int head = 0; head < 4; ++head) {
    const int key = head / 2, own = head % 2;
    CHECK(element(rates, head, 0) == static_cast<float>(4 * key + own));
    CHECK(element(decays, head, 0) == static_cast<float>(4 * key + 2 + own));
  }
  CHECK(source->has(kDelta + "in_proj_ba.weight"));
}

TEST_CASE("blocks that a file cannot have are refused before names are counted from them") {
  GgufWriter writer = writer_of("qwen3");
  writer.value("qwen3.block_count", GgufWriter::kInt64, GgufWriter::raw(INT64_MIN));
  writer.integer("qwen3.nextn_predict_layers", 1);
  const std::string file = writer.file();
  CHECK(source_of(file).error().message ==
        "-9223372036854775808 blocks, of which 1 predict further tokens, are not possible");
}

TEST_CASE("heads of a delta rule that a file cannot have are refused") {
  const auto refusal = [](GgufWriter writer) {
    const std::string file = writer.file();
    const auto source = source_of(file);
    return source.ok() ? std::string("no error") : source.error().message;
  };
  CHECK(refusal(writer_of("qwen35")) ==
        "the GGUF value qwen35.ssm.group_count is 0, from 1 to 16777216 are possible");
  CHECK(refusal(delta_writer("qwen35", 5000)) ==
        "2 key heads of 1 and 4 value heads, 20000 columns together, do not fit");
  CHECK(refusal(delta_writer("qwen35", 1).floats("blk.0.attn_gate.weight", {1, 5}, counted(5))) ==
        "tensor blk.0.attn_gate.weight has 5 rows, but the file's values say 4");
  CHECK(refusal(delta_writer("qwen35", 1).floats("blk.0.ssm_dt.bias", {3}, counted(3))) ==
        "tensor blk.0.ssm_dt.bias has 3 rows, but the file's values say 4");
  CHECK(refusal(delta_writer("qwen3next", 1).floats("blk.0.ssm_ba.weight", {1, 4}, counted(4))) ==
        "tensor blk.0.ssm_ba.weight has 4 rows, but the file's values say 8");
  const std::string blocks =
      delta_writer("qwen35", 16)
          .tensor_with("blk.0.ssm_out.weight", {64, 1}, kQ8_0, std::string(68, ' '))
          .file();
  CHECK(error_of_matrix(blocks, {kDelta + "out_proj.weight", -1, 1, 64}) ==
        "tensor blk.0.ssm_out.weight has value heads of 16 columns in the type Q8_0: only "
        "multiples of 32 are supported there");
}
