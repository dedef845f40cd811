// The experts of gpt-oss without quantisation, as BF16 re-releases store them, against the same
// weights as single matrices. Both are made from the golden case in MXFP4, which BF16 holds
// exactly.
#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>

#include "model/load/open_model.h"
#include "support/golden.h"
#include "support/memory_safetensors.h"
#include "support/model_copy.h"
#include "support/rank_threads.h"
#include "tensor/stored_rows.h"
#include "weights/quantised/quantise.h"

using namespace lockstep;

namespace {

namespace fs = std::filesystem;

const std::string kCase = golden_folder("gptoss-mxfp4");
constexpr int kLayers = 2, kExperts = 8, kHidden = 64, kWidth = 128;

using Elements = std::vector<uint16_t>;

struct Expert {
  Elements gate, up, down;  // (kWidth, kHidden) twice, (kHidden, kWidth)
  Elements gate_bias, up_bias, down_bias;
};

Elements matrix_of(const WeightSource& source, const std::string& name, int expert, int rows,
                   int columns) {
  const auto stored =
      source.matrix({.name = name, .stack_index = expert, .rows = rows, .columns = columns});
  REQUIRE(stored.ok());
  Elements elements;
  std::vector<float> row(static_cast<size_t>(columns));
  for (int i = 0; i < rows; ++i) {
    dequantise_row(stored.value(), i, 0, row);
    for (const float value : row) elements.push_back(bf16_of(value));
  }
  return elements;
}

Elements vector_of(const WeightSource& source, const std::string& name, int expert, int size) {
  const auto stored = source.vector(name, expert, size);
  REQUIRE(stored.ok());
  REQUIRE(stored.value().dtype == DType::kBF16);
  Elements elements(static_cast<size_t>(size));
  std::memcpy(elements.data(), stored.value().bytes.data(), elements.size() * 2);
  return elements;
}

Expert read_expert(const WeightSource& source, int layer, int expert) {
  const std::string stem =
      "model.layers." + std::to_string(layer) + ".mlp.experts." + std::to_string(expert) + ".";
  return {matrix_of(source, stem + "gate_proj.weight", expert, kWidth, kHidden),
          matrix_of(source, stem + "up_proj.weight", expert, kWidth, kHidden),
          matrix_of(source, stem + "down_proj.weight", expert, kHidden, kWidth),
          vector_of(source, stem + "gate_proj.bias", expert, kWidth),
          vector_of(source, stem + "up_proj.bias", expert, kWidth),
          vector_of(source, stem + "down_proj.bias", expert, kHidden)};
}

void append(Elements& to, const Elements& more) {
  to.insert(to.end(), more.begin(), more.end());
}

void add_single(MemorySafetensors& writer, const std::string& stem, const Expert& expert) {
  writer.tensor(stem + "gate_proj.weight", "BF16", {kWidth, kHidden}, expert.gate)
      .tensor(stem + "up_proj.weight", "BF16", {kWidth, kHidden}, expert.up)
      .tensor(stem + "down_proj.weight", "BF16", {kHidden, kWidth}, expert.down)
      .tensor(stem + "gate_proj.bias", "BF16", {kWidth}, expert.gate_bias)
      .tensor(stem + "up_proj.bias", "BF16", {kWidth}, expert.up_bias)
      .tensor(stem + "down_proj.bias", "BF16", {kHidden}, expert.down_bias);
}

void add_stack(MemorySafetensors& writer, const std::string& stem,
               const std::vector<Expert>& experts) {
  Elements gate_up, down, gate_up_bias, down_bias;
  for (const Expert& expert : experts) {
    for (size_t column = 0; column < kHidden; ++column) {
      for (size_t row = 0; row < kWidth; ++row) {
        append(gate_up, {expert.gate[row * kHidden + column], expert.up[row * kHidden + column]});
      }
    }
    for (size_t column = 0; column < kWidth; ++column) {
      for (size_t row = 0; row < kHidden; ++row) {
        down.push_back(expert.down[row * kWidth + column]);
      }
    }
    for (size_t row = 0; row < kWidth; ++row) {
      append(gate_up_bias, {expert.gate_bias[row], expert.up_bias[row]});
    }
    append(down_bias, expert.down_bias);
  }
  writer.tensor(stem + "gate_up_proj", "BF16", {kExperts, kHidden, 2 * kWidth}, gate_up)
      .tensor(stem + "gate_up_proj_bias", "BF16", {kExperts, 2 * kWidth}, gate_up_bias)
      .tensor(stem + "down_proj", "BF16", {kExperts, kWidth, kHidden}, down)
      .tensor(stem + "down_proj_bias", "BF16", {kExperts, kHidden}, down_bias);
}

// Everything except the experts, unchanged.
void copy_others(const std::string& file, MemorySafetensors& writer) {
  std::ifstream stream(file, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(stream)), {});
  uint64_t header_size = 0;
  std::memcpy(&header_size, bytes.data(), sizeof header_size);
  const auto header = parse_json(bytes.substr(sizeof header_size, header_size));
  REQUIRE(header.ok());
  const size_t data = sizeof header_size + header_size;
  for (const auto& entry : header.value().as_object()) {
    const std::string name(entry.key());
    if (name == "__metadata__" || name.find(".experts.") != std::string::npos) continue;
    std::vector<int64_t> shape;
    for (const Json& size : find(entry.value(), "shape")->as_array()) {
      shape.push_back(size.as_int64());
    }
    const JsonArray& offsets = find(entry.value(), "data_offsets")->as_array();
    const auto begin = offsets[0].to_number<size_t>(), end = offsets[1].to_number<size_t>();
    writer.tensor(name, std::string(find(entry.value(), "dtype")->as_string()), shape,
                  bytes.substr(data + begin, end - begin));
  }
}

// A copy of the golden case with its experts in BF16, in one of the two layouts.
void write_experts(ModelCopy& copy, bool as_stack) {
  const auto opened = open_model(kCase);
  REQUIRE(opened.ok());
  MemorySafetensors writer;
  copy_others(kCase + "/model.safetensors", writer);
  for (int layer = 0; layer < kLayers; ++layer) {
    const std::string stem = "model.layers." + std::to_string(layer) + ".mlp.experts.";
    std::vector<Expert> experts;
    for (int expert = 0; expert < kExperts; ++expert) {
      experts.push_back(read_expert(*opened.value().source, layer, expert));
      if (!as_stack) add_single(writer, stem + std::to_string(expert) + ".", experts.back());
    }
    if (as_stack) add_stack(writer, stem, experts);
  }
  std::ofstream(copy.path() + "/model.safetensors", std::ios::binary) << writer.file();
  copy.change_config("quantization_config", nullptr);
}

Answer answer_to_golden_prompt(const ModelCopy& model, const Setup& setup) {
  const Golden golden = read_golden(kCase);
  const GenerateRequest request{.prompt = golden.prompt, .max_tokens = 8, .prompt_logits = true};
  Outcome outcome = run_ranks(model.path(), setup, {request});
  REQUIRE(outcome.answers[0].error.empty());
  return std::move(outcome.answers[0]);
}

}  // namespace

TEST_CASE("gpt-oss' transposed stacks in BF16 give the bits of single matrices") {
  ModelCopy single(kCase), stack(kCase);
  write_experts(single, false);
  write_experts(stack, true);
  const Answer wanted = answer_to_golden_prompt(single, {});
  for (const Setup& setup :
       {Setup{}, Setup{.threads = 2}, Setup{.shares = {1, 1}}, Setup{.shares = {3, 1}}}) {
    CHECK(same_bits(answer_to_golden_prompt(stack, setup), wanted));
  }
  const Answer quantised = answer_to_golden_prompt(single, {.bits = 4});
  CHECK_FALSE(same_bits(quantised, wanted));
  CHECK(same_bits(answer_to_golden_prompt(stack, {.bits = 4}), quantised));
  CHECK(same_bits(answer_to_golden_prompt(stack, {.shares = {1, 1}, .bits = 4}), quantised));

  // The float64 logits of the golden case's weights, without rounding besides that of the weights.
  const Answer exact = answer_to_golden_prompt(single, {.kv = KvKind::kF32});
  double difference = 0, size = 0;
  for (const GoldenRow& row : read_golden(kCase).logits) {
    for (size_t i = 0; i < row.values.size(); ++i) {
      const double got = exact.logits.at(row.position).at(i);
      difference += (got - row.values[i]) * (got - row.values[i]);
      size += row.values[i] * row.values[i];
    }
  }
  CHECK(std::sqrt(difference / size) < 1e-4);
}
