// reference_llama: the forward pass of a Llama 3 in double, written from its definition for tests,
// without code of src/. https://arxiv.org/abs/2407.21783, and LlamaForCausalLM of Hugging Face
// transformers for the order of rows and the scaling of rope frequencies.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numbers>
#include <string>
#include <vector>

namespace lockstep::testing {

struct DenseMatrix {
  size_t rows = 0;
  size_t columns = 0;
  std::vector<double> values;  // (rows, columns)

  double& at(size_t row, size_t column) { return values[row * columns + column]; }
  double at(size_t row, size_t column) const { return values[row * columns + column]; }
};

struct ReferenceLlama {
  size_t hidden, ffn, layers, heads, kv_heads, head_dim, vocabulary;
  double epsilon = 1e-5, theta = 500000;
  double rope_factor = 8, rope_low = 1, rope_high = 4, rope_positions = 64;
  std::map<std::string, DenseMatrix> matrices;  // by the names of Hugging Face, with ".weight"
  std::map<std::string, std::vector<double>> norms;
};

using Rows = std::vector<std::vector<double>>;  // (tokens, size)

inline std::vector<double> product(const DenseMatrix& matrix, const std::vector<double>& x) {
  std::vector<double> y(matrix.rows, 0.0);
  for (size_t row = 0; row < matrix.rows; ++row) {
    for (size_t i = 0; i < matrix.columns; ++i) y[row] += matrix.at(row, i) * x[i];
  }
  return y;
}

inline std::vector<double> normed(const std::vector<double>& x, const std::vector<double>& weight,
                                  double epsilon) {
  double squares = 0;
  for (const double value : x) squares += value * value;
  const double scale = 1 / std::sqrt(squares / static_cast<double>(x.size()) + epsilon);
  std::vector<double> y(x.size());
  for (size_t i = 0; i < x.size(); ++i) y[i] = x[i] * scale * weight[i];
  return y;
}

// The divisor of the frequency of pair i.
inline double rope_divisor(const ReferenceLlama& model, size_t i) {
  const double pairs = static_cast<double>(model.head_dim) / 2;
  const double wavelength =
      2 * std::numbers::pi * std::pow(model.theta, static_cast<double>(i) / pairs);
  const double turns = model.rope_positions / wavelength;
  if (turns > model.rope_high) return 1;
  if (turns < model.rope_low) return model.rope_factor;
  const double smooth = (turns - model.rope_low) / (model.rope_high - model.rope_low);
  return 1 / ((1 - smooth) / model.rope_factor + smooth);
}

inline void rotate_heads(const ReferenceLlama& model, size_t position, std::vector<double>& x) {
  const size_t half = model.head_dim / 2;
  for (size_t i = 0; i < half; ++i) {
    const double frequency =
        std::pow(model.theta, -static_cast<double>(i) / static_cast<double>(half)) /
        rope_divisor(model, i);
    const double angle = static_cast<double>(position) * frequency;
    const double cosine = std::cos(angle), sine = std::sin(angle);
    for (size_t head = 0; head < x.size(); head += model.head_dim) {
      const double a = x[head + i], b = x[head + i + half];
      x[head + i] = a * cosine - b * sine;
      x[head + i + half] = b * cosine + a * sine;
    }
  }
}

// One head's output for `query`, over the positions up to its own.
inline void attend(const ReferenceLlama& model, const double* query, const Rows& keys,
                   const Rows& values, size_t kv_head, double* out) {
  const size_t size = model.head_dim, begin = kv_head * size;
  std::vector<double> scores;
  for (const auto& key : keys) {
    double score = 0;
    for (size_t i = 0; i < size; ++i) score += query[i] * key[begin + i];
    scores.push_back(score / std::sqrt(static_cast<double>(size)));
  }
  const double largest = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (double& score : scores) sum += score = std::exp(score - largest);
  for (size_t position = 0; position < scores.size(); ++position) {
    for (size_t i = 0; i < size; ++i)
      out[i] += scores[position] / sum * values[position][begin + i];
  }
}

inline void add_to(std::vector<double>& x, const std::vector<double>& y) {
  for (size_t i = 0; i < x.size(); ++i) x[i] += y[i];
}

inline void run_layer(const ReferenceLlama& model, const std::string& prefix, Rows& state) {
  const auto matrix = [&](const char* name) -> const DenseMatrix& {
    return model.matrices.at(prefix + name + ".weight");
  };
  Rows keys, values;
  for (size_t position = 0; position < state.size(); ++position) {
    std::vector<double>& x = state[position];
    const auto input = normed(x, model.norms.at(prefix + "input_layernorm.weight"), model.epsilon);
    auto query = product(matrix("self_attn.q_proj"), input);
    rotate_heads(model, position, query);
    rotate_heads(model, position, keys.emplace_back(product(matrix("self_attn.k_proj"), input)));
    values.push_back(product(matrix("self_attn.v_proj"), input));
    std::vector<double> attended(query.size(), 0.0);
    for (size_t head = 0; head < model.heads; ++head) {
      attend(model, &query[head * model.head_dim], keys, values,
             head / (model.heads / model.kv_heads), &attended[head * model.head_dim]);
    }
    add_to(x, product(matrix("self_attn.o_proj"), attended));
    const auto middle =
        normed(x, model.norms.at(prefix + "post_attention_layernorm.weight"), model.epsilon);
    auto gate = product(matrix("mlp.gate_proj"), middle);
    const auto up = product(matrix("mlp.up_proj"), middle);
    for (size_t i = 0; i < gate.size(); ++i) gate[i] *= up[i] / (1 + std::exp(-gate[i]));
    add_to(x, product(matrix("mlp.down_proj"), gate));
  }
}

// (tokens, vocabulary)
inline Rows reference_logits(const ReferenceLlama& model, const std::vector<int32_t>& tokens) {
  const DenseMatrix& embedding = model.matrices.at("model.embed_tokens.weight");
  Rows state;
  for (const int32_t token : tokens) {
    const auto begin = embedding.values.begin() +
                       static_cast<std::ptrdiff_t>(static_cast<size_t>(token) * model.hidden);
    state.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(model.hidden));
  }
  for (size_t layer = 0; layer < model.layers; ++layer) {
    run_layer(model, "model.layers." + std::to_string(layer) + ".", state);
  }
  Rows logits;
  for (const auto& x : state) {
    logits.push_back(product(model.matrices.at("lm_head.weight"),
                             normed(x, model.norms.at("model.norm.weight"), model.epsilon)));
  }
  return logits;
}

}  // namespace lockstep::testing
