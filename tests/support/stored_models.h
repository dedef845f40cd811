// Whole small Llamas for tests of stored formats: the weights, a folder to write them to, and the
// check of an engine's logits against the forward pass in double.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "support/encode_matrix.h"
#include "support/golden.h"
#include "support/rank_threads.h"
#include "support/reference_llama.h"
#include "support/temporary_folder.h"
#include "weights/safetensors/checkpoint.h"

namespace lockstep::testing {

inline constexpr double kLogitTolerance = 1e-3;
inline const std::string kLlamaFolder = LOCKSTEP_SOURCE_DIR "/tests/data/golden/llama3-bf16";

// The golden case's own weights.
inline ReferenceLlama golden_model() {
  ReferenceLlama model{.hidden = 128,
                       .ffn = 256,
                       .layers = 2,
                       .heads = 8,
                       .kv_heads = 4,
                       .head_dim = 16,
                       .vocabulary = 320};
  const auto checkpoint = Checkpoint::open(kLlamaFolder);
  REQUIRE(checkpoint.ok());
  for (const TensorView& tensor : checkpoint.value()->tensors()) {
    std::vector<double> values;
    for (size_t i = 0; i < tensor.bytes.size() / dtype_bytes(tensor.dtype); ++i) {
      values.push_back(static_cast<double>(load_element(tensor.bytes.data(), tensor.dtype, i)));
    }
    if (tensor.shape.size() == 1) {
      model.norms[tensor.name] = values;
    } else {
      model.matrices[tensor.name] = {static_cast<size_t>(tensor.shape[0]),
                                     static_cast<size_t>(tensor.shape[1]), values};
    }
  }
  return model;
}

// Random weights whose rows consist of whole blocks of 256 columns.
inline ReferenceLlama wide_model() {
  ReferenceLlama model{.hidden = 256,
                       .ffn = 512,
                       .layers = 2,
                       .heads = 8,
                       .kv_heads = 2,
                       .head_dim = 32,
                       .vocabulary = 320};
  std::mt19937_64 random(11);
  std::normal_distribution<double> normal;
  const auto add = [&](const std::string& name, size_t rows, size_t columns, double scale) {
    DenseMatrix matrix{rows, columns, {}};
    for (size_t i = 0; i < rows * columns; ++i) {
      matrix.values.push_back(static_cast<double>(static_cast<float>(normal(random) * scale / 16)));
    }
    model.matrices[name + ".weight"] = std::move(matrix);
  };
  const auto add_norm = [&](const std::string& name) {
    for (size_t i = 0; i < model.hidden; ++i) {
      model.norms[name + ".weight"].push_back(static_cast<float>(1 + 0.1 * normal(random)));
    }
  };
  add("model.embed_tokens", model.vocabulary, 256, 16);
  add("lm_head", model.vocabulary, 256, 3);
  add_norm("model.norm");
  for (const std::string prefix : {"model.layers.0.", "model.layers.1."}) {
    add_norm(prefix + "input_layernorm");
    add_norm(prefix + "post_attention_layernorm");
    add(prefix + "self_attn.q_proj", 256, 256, 1.5);
    add(prefix + "self_attn.k_proj", 64, 256, 1.5);
    add(prefix + "self_attn.v_proj", 64, 256, 1);
    add(prefix + "self_attn.o_proj", 256, 256, 1);
    add(prefix + "mlp.gate_proj", 512, 256, 1);
    add(prefix + "mlp.up_proj", 512, 256, 1);
    add(prefix + "mlp.down_proj", 256, 512, 0.7);
  }
  return model;
}

inline std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

inline double rms(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return std::sqrt(sum / static_cast<double>(values.size()));
}

// Checks the encoder, so that a wrong code cannot hide a wrong definition.
inline void check_encoding(const DenseMatrix& dense, const DenseMatrix& values, double bits) {
  std::vector<double> differences;
  for (size_t i = 0; i < dense.values.size(); ++i) {
    differences.push_back(values.values[i] - dense.values[i]);
  }
  const double lost = rms(differences) / rms(dense.values);
  CHECK(lost < 1.7 * std::exp2(-bits));
}

inline std::vector<double> differences(const Answer& answer, const Rows& expected) {
  std::vector<double> all;
  REQUIRE(answer.logits.size() == expected.size());
  for (size_t row = 0; row < expected.size(); ++row) {
    REQUIRE(answer.logits[row].size() == expected[row].size());
    for (size_t i = 0; i < expected[row].size(); ++i) {
      all.push_back(static_cast<double>(answer.logits[row][i]) - expected[row][i]);
    }
  }
  return all;
}

inline double largest(const std::vector<double>& values) {
  double result = 0;
  for (const double value : values) result = std::max(result, std::abs(value));
  return result;
}

inline double spread(const Rows& rows) {
  std::vector<double> all;
  for (const auto& row : rows) all.insert(all.end(), row.begin(), row.end());
  return rms(all);
}

struct Expected {
  std::vector<int32_t> prompt;
  Rows logits;
  double rounding;  // of activations to 8 bits, RMS
};

inline void check_answers(const std::string& path, const Expected& expected) {
  const GenerateRequest request{.prompt = expected.prompt, .max_tokens = 0, .prompt_logits = true};
  for (const bool exact : {true, false}) {
    CAPTURE(exact);
    const auto run = [&](std::vector<double> shares) {
      const Setup setup{.shares = std::move(shares), .exact = exact, .kv = KvKind::kF32};
      return run_ranks(path, setup, {request}).answers[0];
    };
    const Answer alone = run({1});
    const std::vector<double> misses = differences(alone, expected.logits);
    if (exact || expected.rounding == 0) {
      CHECK(largest(misses) < kLogitTolerance);
    } else {
      CHECK(rms(misses) < 2 * expected.rounding);
    }
    CHECK(same_bits(run({1, 1}), alone));
    CHECK(same_bits(run({1, 1, 1}), alone));
  }
}

}  // namespace lockstep::testing
