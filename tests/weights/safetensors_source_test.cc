#include "weights/source/safetensors_source.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "support/defined_weights.h"
#include "support/memory_source.h"
#include "support/temporary_folder.h"

using namespace lockstep;
using lockstep::testing::defined_weight;

namespace {

// (rows, columns) where element (r, c) is 100 * r + c, plus 10000 * matrix in a stack.
std::vector<float> numbered(int rows, int columns, int matrices = 1) {
  std::vector<float> values;
  for (int matrix = 0; matrix < matrices; ++matrix) {
    for (int row = 0; row < rows; ++row) {
      for (int column = 0; column < columns; ++column) {
        values.push_back(static_cast<float>(10000 * matrix + 100 * row + column));
      }
    }
  }
  return values;
}

float first_float(const StoredVector& vector) {
  REQUIRE(vector.dtype == DType::kF32);
  return load_element(vector.bytes.data(), DType::kF32, 0);
}

}  // namespace

TEST_CASE("plain matrices of the three float types are found by their name") {
  const MemorySource source(MemorySafetensors()
                                .tensor("a.weight", "F32", {2, 3}, numbered(2, 3))
                                .filled("b.weight", "F16", {2, 3}, uint16_t{0x3c00})
                                .filled("c.weight", "BF16", {2, 3}, uint16_t{0x4000}));
  const StoredMatrix matrix = source.matrix("a.weight", 2, 3);
  CHECK(matrix.format == StoredFormat::kPlain);
  CHECK(matrix.row_bytes == 12);
  CHECK(defined_weight(matrix, 1, 2) == 102);
  CHECK(defined_weight(source.matrix("b.weight", 2, 3), 1, 2) == 1);
  CHECK(defined_weight(source.matrix("c.weight", 2, 3), 0, 0) == 2);
  const Error error = source.matrix_error("a.weight", 3, 2);
  CHECK(error.code == ErrorCode::kCorrupt);
  CHECK(error.message == "the tensor a.weight is F32 (2, 3) where the shape (3, 2) is expected");
}

TEST_CASE("vectors are floats of exactly the requested size") {
  const MemorySource source(MemorySafetensors()
                                .tensor("a.bias", "F32", {2}, std::vector<float>{3, 4})
                                .filled("model.layers.0.mlp.gate.e_score", "F32", {2}, 5.0f)
                                .filled("ints.bias", "I32", {2}, 1)
                                .filled("odd.bias", "F64", {2}, 1.0));
  CHECK(first_float(source->vector("a.bias", -1, 2).value()) == 3);
  CHECK(first_float(source->vector("model.layers.0.mlp.gate.e_score", -1, 2).value()) == 5);
  CHECK(source->vector("a.bias", -1, 3).error().message ==
        "the tensor a.bias is F32 (2) where the shape (3) is expected");
  CHECK(source->vector("ints.bias", -1, 2).error().code == ErrorCode::kCorrupt);
  CHECK(source->vector("odd.bias", -1, 2).error().code == ErrorCode::kUnsupported);
  CHECK(source->has("odd.bias"));
  CHECK(source->vector("b.bias", -1, 2).error().code == ErrorCode::kNotFound);
  CHECK_FALSE(source->has("b.bias"));
}

TEST_CASE("the language model is found inside a wrapper's names") {
  struct Names {
    const char* embedding;
    const char* norm;
    const char* head;
  };
  const Names cases[] = {
      {"model.embed_tokens.weight", "model.norm.weight", "lm_head.weight"},
      {"language_model.model.embed_tokens.weight", "language_model.model.norm.weight",
       "language_model.lm_head.weight"},
      {"model.language_model.embed_tokens.weight", "model.language_model.norm.weight",
       "lm_head.weight"},
      {"language_model.embed_tokens.weight", "language_model.norm.weight", "lm_head.weight"},
      {"embed_tokens.weight", "norm.weight", "lm_head.weight"},
  };
  for (const Names& names : cases) {
    CAPTURE(names.embedding);
    const MemorySource source(MemorySafetensors()
                                  .filled(names.embedding, "F32", {4, 2}, 1.0f)
                                  .filled(names.norm, "F32", {2}, 2.0f)
                                  .filled(names.head, "F32", {4, 2}, 3.0f)
                                  // Names of the model's other parts must not be taken for these.
                                  .filled("model.layers.61.embed_tokens.weight", "F32", {4, 2}, 9.f)
                                  .filled("vision_tower.norm.weight", "F32", {2}, 9.0f));
    CHECK(defined_weight(source.matrix("model.embed_tokens.weight", 4, 2), 0, 0) == 1);
    CHECK(first_float(source->vector("model.norm.weight", -1, 2).value()) == 2);
    CHECK(defined_weight(source.matrix("lm_head.weight", 4, 2), 0, 0) == 3);
    CHECK(source->has("lm_head.weight"));
    CHECK_FALSE(source->has("model.layers.0.norm.weight"));
  }
}

TEST_CASE("experts are found as single tensors and in MLX's stacks") {
  const std::string layer = "model.layers.3.mlp";
  const std::string request = layer + ".experts.1.gate_proj.weight";
  const MemorySource alone(MemorySafetensors().tensor(request, "F32", {2, 3}, numbered(2, 3)));
  CHECK(defined_weight(alone.matrix(request, 2, 3, 1), 1, 2) == 102);
  for (const char* stack :
       {".switch_mlp.gate_proj", ".experts.switch_glu.gate_proj", ".experts.gate_proj"}) {
    CAPTURE(stack);
    const MemorySource source(
        MemorySafetensors()
            .tensor(layer + stack + ".weight", "F32", {2, 2, 3}, numbered(2, 3, 2))
            .tensor(layer + stack + ".bias", "F32", {2, 2}, std::vector<float>{1, 2, 3, 4}));
    CHECK(source->has(request, 1));
    CHECK_FALSE(source->has(request, -1));
    CHECK(defined_weight(source.matrix(request, 2, 3, 1), 1, 2) == 10102);
    CHECK(first_float(source->vector(layer + ".experts.1.gate_proj.bias", 1, 2).value()) == 3);
    const Error error = source.matrix_error(layer + ".experts.2.gate_proj.weight", 2, 3, 2);
    CHECK(error.message == "the tensor " + layer + stack +
                               ".weight is F32 (2, 2, 3) where a stack with a matrix 2 is "
                               "expected");
  }
}

TEST_CASE("DeepSeek V4's own names, MLX's, and a stack that is asked for as one matrix") {
  const MemorySource own(
      MemorySafetensors()
          .tensor("embed.weight", "F32", {3, 2}, numbered(3, 2))
          .tensor("head.weight", "F32", {3, 2}, numbered(3, 2))
          .tensor("hc_head_fn", "F32", {4, 8}, numbered(4, 8))
          .tensor("hc_head_scale", "F32", {1}, std::vector<float>{5})
          .tensor("layers.0.attn.compressor.ape", "F32", {4, 2}, numbered(4, 2))
          .tensor("layers.0.ffn.shared_experts.w1.weight", "F32", {2, 3}, numbered(2, 3))
          .tensor("mtp.0.hc_head_base", "F32", {4}, numbered(1, 4))
          .tensor("layers.0.ffn.gate.tid2eid", "I64", {3, 2},
                  MemorySafetensors::bytes_of(std::vector<int64_t>{5, 0, 1, 2, 4, 3})));
  CHECK(defined_weight(own.matrix("model.embed_tokens.weight", 3, 2), 2, 1) == 201);
  CHECK(defined_weight(own.matrix("lm_head.weight", 3, 2), 1, 1) == 101);
  CHECK(defined_weight(own.matrix("model.hc_head_fn.weight", 4, 8), 3, 7) == 307);
  CHECK(defined_weight(own.matrix("model.layers.0.ffn.shared_experts.w1.weight", 2, 3), 1, 2) ==
        102);
  CHECK(first_float(own->vector("model.hc_head_scale", -1, 1).value()) == 5);
  CHECK((own->has("model.hc_head_scale", -1) && !own->has("model.hc_head_base", -1)));
  CHECK(own->vector("model.layers.0.attn.compressor.ape", -1, 8).ok());
  CHECK(own->vector("mtp.0.hc_head_base", -1, 4).ok());
  const auto table = own->vector("model.layers.0.ffn.gate.tid2eid", -1, 6);
  REQUIRE_MESSAGE(table.ok(), table.error().message);
  CHECK(load_element(table.value().bytes.data(), table.value().dtype, 0) == 5);
  CHECK(load_element(table.value().bytes.data(), table.value().dtype, 5) == 3);
  CHECK_FALSE(own->vector("model.layers.0.ffn.gate.tid2eid", -1, 8).ok());

  const MemorySource mlx(
      MemorySafetensors()
          .tensor("model.embed_tokens.weight", "F32", {3, 2}, numbered(3, 2))
          .tensor("model.hc_head.scale", "F32", {1}, std::vector<float>{7})
          .tensor("model.hc_head.fn", "F32", {4, 8}, numbered(4, 8))
          .tensor("model.layers.0.ffn.gate.e_score_correction_bias", "F32", {6}, numbered(1, 6))
          .tensor("model.layers.0.ffn.shared_experts.gate_proj.weight", "F32", {2, 3},
                  numbered(2, 3))
          .tensor("model.layers.0.attn.wo_a.weight", "F32", {2, 3, 4}, numbered(3, 4, 2)));
  CHECK(first_float(mlx->vector("model.hc_head_scale", -1, 1).value()) == 7);
  CHECK(defined_weight(mlx.matrix("model.hc_head_fn.weight", 4, 8), 3, 7) == 307);
  CHECK(mlx->vector("model.layers.0.ffn.gate.bias", -1, 6).ok());
  CHECK(mlx->has("model.layers.0.ffn.gate.bias", -1));
  CHECK(defined_weight(mlx.matrix("model.layers.0.ffn.shared_experts.w1.weight", 2, 3), 1, 2) ==
        102);
  const StoredMatrix whole = mlx.matrix("model.layers.0.attn.wo_a.weight", 6, 4);
  CHECK((defined_weight(whole, 2, 3) == 203 && defined_weight(whole, 3, 1) == 10001));
  CHECK(mlx.matrix_error("model.layers.0.attn.wo_a.weight", 3, 4).code == ErrorCode::kCorrupt);
}

TEST_CASE("heads are found in a stack with exactly their name") {
  const MemorySource source(MemorySafetensors().tensor("model.layers.0.self_attn.embed_q.weight",
                                                       "F32", {3, 2, 2}, numbered(2, 2, 3)));
  const auto head = source.matrix("model.layers.0.self_attn.embed_q.weight", 2, 2, 2);
  CHECK(defined_weight(head, 1, 1) == 20101);
  CHECK(head.codes.size() == 16);
  CHECK(source.matrix_error("model.layers.0.self_attn.embed_q.weight", 2, 2).code ==
        ErrorCode::kCorrupt);
}

TEST_CASE("gpt-oss' gate rows are the even ones of a fused stack, up rows the odd ones") {
  const std::string experts = "model.layers.0.mlp.experts";
  // One block of 32 columns for each of 4 rows: all codes of row r are r + 1, with scale 2^r.
  std::string blocks;
  for (const char code : {0x11, 0x22, 0x33, 0x44}) blocks += std::string(16, code);
  const MemorySource source(
      MemorySafetensors()
          .tensor(experts + ".gate_up_proj_blocks", "U8", {1, 4, 1, 16}, blocks)
          .tensor(experts + ".gate_up_proj_scales", "U8", {1, 4, 1},
                  std::vector<uint8_t>{127, 128, 129, 130})
          .tensor(experts + ".gate_up_proj_bias", "F32", {1, 4}, std::vector<float>{5, 6, 7, 8})
          .filled(experts + ".down_proj_bias", "F32", {1, 3}, 9.0f));
  const auto gate = source.matrix(experts + ".0.gate_proj.weight", 2, 32, 0);
  CHECK(defined_weight(gate, 0, 0) == 0.5);
  CHECK(defined_weight(gate, 1, 31) == 1.5 * 4);
  const auto up = source.matrix(experts + ".0.up_proj.weight", 2, 32, 0);
  CHECK(defined_weight(up, 0, 0) == 1 * 2);
  CHECK(defined_weight(up, 1, 31) == 2 * 8);
  CHECK(first_float(source->vector(experts + ".0.gate_proj.bias", 0, 2).value()) == 5);
  CHECK(first_float(source->vector(experts + ".0.up_proj.bias", 0, 2).value()) == 6);
  CHECK(first_float(source->vector(experts + ".0.down_proj.bias", 0, 3).value()) == 9);
  CHECK(source->vector(experts + ".0.up_proj.bias", 0, 1).error().code == ErrorCode::kCorrupt);
  CHECK(source->vector(experts + ".1.up_proj.bias", 1, 2).error().code == ErrorCode::kCorrupt);
  for (const int rows : {1, 3}) {
    CHECK(source.matrix_error(experts + ".0.up_proj.weight", rows, 32, 0).code ==
          ErrorCode::kCorrupt);
  }
  CHECK(source.matrix_error(experts + ".1.up_proj.weight", 2, 32, 1).code == ErrorCode::kCorrupt);
}

TEST_CASE("pages of an in-memory file are never released") {
  const MemorySource source(MemorySafetensors().filled("a.weight", "F32", {1, 1}, 1.0f));
  CHECK(!source.matrix("a.weight", 1, 1).is_mapped_file);
}

TEST_CASE("unquantised experts of gpt-oss are transposed, with gate and up interleaved") {
  const std::string experts = "model.layers.0.mlp.experts";
  // More than one block of rows and columns: 100 rows of 70 gates and as many ups.
  const MemorySource source(
      MemorySafetensors()
          .tensor(experts + ".gate_up_proj", "F32", {2, 70, 200}, numbered(70, 200, 2))
          .filled(experts + ".gate_up_proj_bias", "F32", {2, 200}, 1.0f)
          .tensor(experts + ".down_proj", "F32", {2, 100, 70}, numbered(100, 70, 2))
          .filled(experts + ".down_proj_bias", "F32", {2, 70}, 2.0f));
  CHECK(source->has(experts + ".1.up_proj.weight", 1));
  for (const int expert : {0, 1}) {
    const std::string name = experts + "." + std::to_string(expert);
    const StoredMatrix gate = source.matrix(name + ".gate_proj.weight", 100, 70, expert);
    const StoredMatrix up = source.matrix(name + ".up_proj.weight", 100, 70, expert);
    const StoredMatrix down = source.matrix(name + ".down_proj.weight", 70, 100, expert);
    bool is_same = true;
    for (int row = 0; row < 100; ++row) {
      for (int column = 0; column < 70; ++column) {
        const int stored = 10000 * expert + 100 * column;
        is_same &= defined_weight(gate, row, column) == stored + 2 * row;
        is_same &= defined_weight(up, row, column) == stored + 2 * row + 1;
        is_same &= defined_weight(down, column, row) == 10000 * expert + 100 * row + column;
      }
    }
    CHECK(is_same);
  }
  // Only a rank's part.
  const auto part = source->matrix({.name = experts + ".1.up_proj.weight",
                                    .stack_index = 1,
                                    .rows = 100,
                                    .columns = 70,
                                    .row_begin = 90,
                                    .row_end = 99,
                                    .column_begin = 65,
                                    .column_end = 70});
  REQUIRE(part.ok());
  CHECK(defined_weight(part.value(), 90, 65) == 10000 + 6500 + 181);
  CHECK(defined_weight(part.value(), 98, 69) == 10000 + 6900 + 197);
  CHECK(source.matrix_error(experts + ".1.up_proj.weight", 70, 100, 1).code == ErrorCode::kCorrupt);
  CHECK(source.matrix_error(experts + ".2.up_proj.weight", 100, 70, 2).code == ErrorCode::kCorrupt);
}

TEST_CASE("fused experts of other families are refused by name") {
  const std::string experts = "model.layers.0.mlp.experts";
  const MemorySource source(
      MemorySafetensors().filled(experts + ".gate_up_proj", "F32", {1, 2, 4}, 1.0f));
  CHECK(source->has(experts + ".0.up_proj.weight", 0));
  const Error error = source.matrix_error(experts + ".0.up_proj.weight", 2, 2, 0);
  CHECK(error.code == ErrorCode::kUnsupported);
  CHECK(error.message == "the tensor " + experts +
                             ".gate_up_proj stores all experts in a way unknown here; supported "
                             "are the stacks of gpt-oss, which have biases, those of MLX, and "
                             "single tensors");
}

TEST_CASE("a folder names its file when config.json is broken or its quantisation unknown") {
  const TemporaryFolder folder;
  const std::string file = MemorySafetensors().filled("a.weight", "F32", {1, 1}, 1.0f).file();
  folder.write("model.safetensors", file);
  auto source = SafetensorsSource::open(folder.path());
  REQUIRE(source.ok());
  CHECK(source.value()->file_bytes() == file.size());
  const auto matrix = source.value()->matrix({"a.weight", -1, 1, 1});
  REQUIRE(matrix.ok());
  CHECK(matrix.value().is_mapped_file);
  folder.write("config.json", "{");
  source = SafetensorsSource::open(folder.path());
  REQUIRE_FALSE(source.ok());
  CHECK(source.error().message.starts_with((folder.path() / "config.json").string()));
  folder.write("config.json", R"({"quantization_config":{"quant_method":"bitsandbytes"}})");
  source = SafetensorsSource::open(folder.path());
  REQUIRE_FALSE(source.ok());
  CHECK(source.error().code == ErrorCode::kUnsupported);
  CHECK(source.error().message.starts_with(
      "the quantisation \"bitsandbytes\" is unknown here; supported are: "));
}

TEST_CASE("tables and matrices whose names end without .weight, and refusals of them") {
  const MemorySource source(MemorySafetensors()
                                .tensor("a.hc_attn_fn", "F32", {2, 3}, numbered(2, 3))
                                .tensor("a.ape", "F32", {2, 3}, numbered(2, 3))
                                .filled("b.hc_attn_fn", "I32", {2, 3}, 1)
                                .tensor("c.bias", "F32", {2, 3}, numbered(2, 3)));
  CHECK(source->has("a.hc_attn_fn.weight", -1));
  CHECK(defined_weight(source.matrix("a.hc_attn_fn.weight", 2, 3), 1, 2) == 102);
  CHECK(source.matrix_error("a.hc_attn_fn.weight", 3, 2).code == ErrorCode::kCorrupt);
  CHECK(source.matrix_error("b.hc_attn_fn.weight", 2, 3).code == ErrorCode::kCorrupt);
  CHECK(source->vector("a.ape", -1, 6).ok());
  CHECK_FALSE(source->vector("a.ape", -1, 5).ok());
  CHECK_FALSE(source->vector("c.bias", -1, 6).ok());
}

TEST_CASE(
    "names of oMLX: joined convolutions, modules with names of their own, a draft layer apart") {
  const std::string layer = "language_model.model.layers.0.";
  const MemorySource source(
      MemorySafetensors()
          .tensor("language_model.model.embed_tokens.weight", "F32", {2, 3}, numbered(2, 3))
          .tensor(layer + "attn_hc.fn", "F32", {2, 3}, numbered(2, 3))
          .tensor(layer + "attn_hc.base", "F32", {2}, std::vector<float>{7, 8})
          .tensor(layer + "self_attn.forget_gate.A_log", "F32", {1}, std::vector<float>{9})
          .tensor(layer + "self_attn.conv1d.weight", "F32", {6, 4, 1}, numbered(6, 4))
          .tensor("language_model.mtp.0.enorm.weight", "F32", {1}, std::vector<float>{11})
          .tensor("language_model.mtp.0.norm.weight", "F32", {1}, std::vector<float>{12})
          .tensor("language_model.mtp.0.block.norm.weight", "F32", {1}, std::vector<float>{13}));
  CHECK(defined_weight(source.matrix("model.layers.0.hc_attn_fn.weight", 2, 3), 1, 2) == 102);
  CHECK(first_float(source->vector("model.layers.0.hc_attn_base", -1, 2).value()) == 7);
  CHECK(first_float(source->vector("model.layers.0.self_attn.A_log", -1, 1).value()) == 9);
  float rows = 0;
  for (const char* part : {"q_conv1d", "k_conv1d", "v_conv1d"}) {
    CAPTURE(part);
    const std::string name = std::string("model.layers.0.self_attn.") + part + ".weight";
    CHECK(source->shape_of(name) == std::vector<int64_t>{2, 4, 1});
    CHECK(first_float(source->vector(name, -1, 8).value()) == 100 * rows);
    CHECK_FALSE(source->vector(name, -1, 9).ok());
    rows += 2;
  }
  CHECK(first_float(source->vector("model.layers.1.enorm.weight", -1, 1).value()) == 11);
  CHECK(first_float(source->vector("model.layers.1.shared_head.norm.weight", -1, 1).value()) == 12);
  CHECK(first_float(source->vector("model.layers.1.norm.weight", -1, 1).value()) == 13);
  CHECK_FALSE(source->has("model.layers.2.norm.weight", -1));
}
