// Real files of every kind, compared with values that a separate Python program computed from the
// same files, following the definitions in tests/data/golden/README.md.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "support/defined_weights.h"
#include "weights/source/safetensors_source.h"

using namespace lockstep;
using lockstep::testing::defined_weight;

namespace {

struct Element {
  int row;
  int column;
  double value;
};

struct GoldenMatrix {
  const char* folder;
  const char* name;
  int stack_index;
  int rows;
  int columns;
  StoredFormat format;
  std::vector<Element> elements;
};

std::shared_ptr<const WeightSource> open_golden(const std::string& folder) {
  auto source = SafetensorsSource::open(LOCKSTEP_SOURCE_DIR "/tests/data/golden/" + folder);
  REQUIRE_MESSAGE(source.ok(), source.error().message);
  return source.value();
}

const GoldenMatrix kMatrices[] = {
    {"deepseekv3-fp8",
     "model.layers.0.mlp.down_proj.weight",
     -1,
     160,
     256,
     StoredFormat::kFp8,
     {{0, 0, 0.005872059089597315},
      {53, 129, 0.07112590130418539},
      {159, 255, 0.12009173631668091}}},
    {"deepseekv3-fp8",
     "model.layers.1.mlp.experts.5.gate_proj.weight",
     5,
     96,
     160,
     StoredFormat::kFp8,
     {{0, 0, -0.1685652919113636}, {32, 81, -0.0842826459556818}, {95, 159, -0.07328485604375601}}},
    {"ministral3-fp8",
     "model.layers.0.mlp.up_proj.weight",
     -1,
     256,
     96,
     StoredFormat::kFp8,
     {{0, 0, 0.1021728515625}, {85, 49, -0.04541015625}, {255, 95, 0.06243896484375}}},
    {"deepseekv3-fp8",
     "lm_head.weight",
     -1,
     320,
     160,
     StoredFormat::kPlain,
     {{0, 0, 0.07421875}, {106, 81, 0.421875}, {319, 159, 0.361328125}}},
    {"qwen3moe-mxfp4",
     "model.layers.1.mlp.experts.0.gate_proj.weight",
     0,
     128,
     64,
     StoredFormat::kFp4,
     {{0, 0, 0.1875}, {42, 33, 0.03125}, {127, 63, 0.25}}},
    {"qwen3moe-mxfp4",
     "model.layers.1.mlp.experts.7.down_proj.weight",
     7,
     64,
     128,
     StoredFormat::kFp4,
     {{0, 0, 0.125}, {21, 65, 0.125}, {63, 127, 0.375}}},
    {"qwen3moe-mxfp4",
     "model.layers.1.mlp.gate.weight",
     -1,
     8,
     64,
     StoredFormat::kAffine,
     {{0, 0, 0.194091796875}, {2, 33, 0.0498046875}, {7, 63, -0.04815673828125}}},
    {"llama3-q6-g64",
     "model.embed_tokens.weight",
     -1,
     320,
     128,
     StoredFormat::kAffine,
     {{0, 0, 0.572265625}, {106, 65, 0.20458984375}, {319, 127, 0.750732421875}}},
    {"llama3-q6-g64",
     "model.layers.0.self_attn.o_proj.weight",
     -1,
     128,
     256,
     StoredFormat::kAffine,
     {{0, 0, -0.087646484375}, {42, 129, -0.103759765625}, {127, 255, 0.14117431640625}}},
    {"deepseekv3-q4-g64",
     "model.layers.0.self_attn.embed_q.weight",
     2,
     64,
     64,
     StoredFormat::kAffine,
     {{0, 0, -0.05615234375}, {21, 33, -0.158935546875}, {63, 63, 0.2138671875}}},
    {"deepseekv3-q4-g64",
     "model.layers.1.mlp.experts.6.up_proj.weight",
     6,
     256,
     64,
     StoredFormat::kAffine,
     {{0, 0, -0.076171875}, {85, 33, 0.15673828125}, {255, 63, 0.11474609375}}},
    {"kimik2-int4-packed",
     "model.layers.1.mlp.experts.3.down_proj.weight",
     3,
     64,
     128,
     StoredFormat::kPackedInt,
     {{0, 0, -0.255859375}, {21, 65, 0.12890625}, {63, 127, -0.07861328125}}},
    {"gptoss-mxfp4",
     "model.layers.0.mlp.experts.3.gate_proj.weight",
     3,
     128,
     64,
     StoredFormat::kFp4,
     {{0, 0, 0.75}, {42, 33, -0.5}, {127, 63, 0.125}}},
    {"gptoss-mxfp4",
     "model.layers.0.mlp.experts.3.up_proj.weight",
     3,
     128,
     64,
     StoredFormat::kFp4,
     {{0, 0, 0.0}, {42, 33, -0.125}, {127, 63, 0.5}}},
    {"gptoss-mxfp4",
     "model.layers.0.mlp.experts.7.down_proj.weight",
     7,
     64,
     128,
     StoredFormat::kFp4,
     {{0, 0, -0.125}, {21, 65, -0.09375}, {63, 127, -0.0078125}}},
};

struct GoldenVector {
  const char* folder;
  const char* name;
  int stack_index;
  int size;
  std::vector<std::pair<size_t, double>> elements;
};

const GoldenVector kVectors[] = {
    {"gptoss-mxfp4",
     "model.layers.0.mlp.experts.3.gate_proj.bias",
     3,
     128,
     {{0, -0.1181640625}, {42, 0.36328125}, {127, -0.2578125}}},
    {"gptoss-mxfp4",
     "model.layers.0.mlp.experts.7.up_proj.bias",
     7,
     128,
     {{0, -0.01904296875}, {42, 0.3984375}, {127, -0.375}}},
    {"gptoss-mxfp4",
     "model.layers.0.mlp.experts.2.down_proj.bias",
     2,
     64,
     {{0, 0.62109375}, {21, -0.765625}, {63, -0.6328125}}},
};

}  // namespace

TEST_CASE("matrices of real checkpoints have independently computed values") {
  for (const GoldenMatrix& golden : kMatrices) {
    CAPTURE(golden.folder);
    CAPTURE(golden.name);
    const auto source = open_golden(golden.folder);
    CHECK(source->has(golden.name, golden.stack_index));
    const auto matrix =
        source->matrix({golden.name, golden.stack_index, golden.rows, golden.columns});
    REQUIRE_MESSAGE(matrix.ok(), matrix.error().message);
    CHECK(matrix.value().format == golden.format);
    for (const Element& element : golden.elements) {
      CHECK(defined_weight(matrix.value(), element.row, element.column) == element.value);
    }
  }
}

TEST_CASE("biases of stacked experts have independently computed values") {
  for (const GoldenVector& golden : kVectors) {
    CAPTURE(golden.name);
    const auto source = open_golden(golden.folder);
    CHECK(source->has(golden.name, golden.stack_index));
    const auto vector = source->vector(golden.name, golden.stack_index, golden.size);
    REQUIRE_MESSAGE(vector.ok(), vector.error().message);
    REQUIRE(vector.value().bytes.size() ==
            static_cast<size_t>(golden.size) * dtype_bytes(vector.value().dtype));
    for (const auto& [index, value] : golden.elements) {
      CHECK(load_element(vector.value().bytes.data(), vector.value().dtype, index) == value);
    }
  }
}

TEST_CASE("a real checkpoint reports missing tensors and its size") {
  const auto source = open_golden("gptoss-mxfp4");
  CHECK_FALSE(source->has("model.layers.0.mlp.gate_proj.weight"));
  CHECK_FALSE(source->has("model.layers.0.mlp.experts.3.gate_proj.scale", 3));
  const auto missing = source->matrix({"model.layers.9.mlp.gate_proj.weight", -1, 1, 1});
  REQUIRE_FALSE(missing.ok());
  CHECK(missing.error().code == ErrorCode::kNotFound);
  CHECK(missing.error().message ==
        "the checkpoint has no tensor model.layers.9.mlp.gate_proj.weight");
  const auto behind = source->matrix({"model.layers.0.mlp.experts.8.down_proj.weight", 8, 64, 128});
  REQUIRE_FALSE(behind.ok());
  CHECK(behind.error().message ==
        "the tensor model.layers.0.mlp.experts.down_proj_blocks is U8 (8, 64, 4, 16) where a stack "
        "with a matrix 8 is expected");
  CHECK(source->file_bytes() ==
        std::filesystem::file_size(LOCKSTEP_SOURCE_DIR
                                   "/tests/data/golden/gptoss-mxfp4/model.safetensors"));
}
