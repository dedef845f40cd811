// The arithmetic of docs/internals/arithmetic.md in plain C++, number by number: what every kernel
// table must equal bit for bit. It shares no code with the kernels.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/answers/sample_quantised.h"
#include "kernels/math.h"

namespace lockstep::definition {

// Lanes added in a tree: i and i + n / 2, then i and i + n / 4, ...; a power of two of them.
inline float tree_sum(std::vector<float> lanes) {
  for (size_t half = lanes.size() / 2; half > 0; half /= 2) {
    for (size_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  }
  return lanes[0];
}

// One leaf of plain elements: `sum` is what earlier parts have left. weight(c) and x(c) are the
// elements of column c.
template <class Weight, class Input>
float add_plain_leaf(float sum, int begin, int end, Weight weight, Input x) {
  for (int run = begin; run < end; run += 256) {
    float chain = 0.0f;
    for (int c = run; c < std::min(run + 256, end); ++c) chain = std::fma(weight(c), x(c), chain);
    sum = sum + chain;
  }
  return sum;
}

inline float sum_of_squares(const float* x, size_t columns) {
  std::vector<float> lanes(128, 0.0f);
  for (size_t c = 0; c < columns; ++c) lanes[c % 128] = std::fma(x[c], x[c], lanes[c % 128]);
  return tree_sum(lanes);
}

inline std::vector<float> rms_norm(const float* x, const std::vector<float>& weight,
                                   float epsilon) {
  const float mean = sum_of_squares(x, weight.size()) / static_cast<float>(weight.size());
  const float scale = 1.0f / std::sqrt(mean + epsilon);
  std::vector<float> y;
  for (size_t c = 0; c < weight.size(); ++c) y.push_back((x[c] * scale) * weight[c]);
  return y;
}

inline float softplus(float x) {
  const float u = exp_f32(0.0f - std::fmax(x, 0.0f - x));
  const float s = u / (2.0f + u), s2 = s * s;
  float p = 1.0f / 15;
  for (const float odd : {13.0f, 11.0f, 9.0f, 7.0f, 5.0f, 3.0f}) p = std::fma(p, s2, 1.0f / odd);
  const float twice = s + s;
  return std::fmax(x, 0.0f) + std::fma(twice * s2, p, twice);
}

inline float decay(float x, float bias, float rate) {
  return exp_f32(0.0f - rate * softplus(x + bias));
}

inline float bounded_decay(float x, float bias, float rate, float least) {
  return exp_f32(least * sigmoid_f32(rate * (x + bias)));
}

// One column of a pool or an entry: its members' keys or values, and their gates with the biases.
inline float pooled_key(const std::vector<float>& keys, const std::vector<float>& gates) {
  const float most = *std::max_element(gates.begin(), gates.end());
  float sum = 0.0f, mean = 0.0f;
  for (size_t m = 0; m < keys.size(); ++m) {
    const float e = exp_f32(gates[m] - most);
    sum += e;
    mean = std::fma(e, keys[m], mean);
  }
  return mean / sum;
}

// A row is a key and its value; `lane`: of the sum of its page's probabilities.
struct AttendedRow {
  const float* row;
  int lane;
};

// One head over rows in pages, of which none is empty. `sink` may be null.
inline std::vector<float> attention(const std::vector<float>& query,
                                    const std::vector<std::vector<AttendedRow>>& pages, float scale,
                                    const float* sink) {
  const size_t columns = query.size();
  float maximum = 0.0f, sum = 0.0f;
  std::vector<float> value;
  for (const std::vector<AttendedRow>& page : pages) {
    std::vector<float> scores, lanes(16, 0.0f), added(columns, 0.0f);
    for (const AttendedRow& of : page) {
      float score = 0.0f;
      for (size_t i = 0; i < columns; ++i) score = std::fma(query[i], of.row[i], score);
      scores.push_back(score * scale);
    }
    const float most = *std::max_element(scores.begin(), scores.end());
    for (size_t r = 0; r < page.size(); ++r) {
      const float e = exp_f32(scores[r] - most);
      lanes[static_cast<size_t>(page[r].lane)] += e;
      for (size_t i = 0; i < columns; ++i) added[i] = std::fma(e, page[r].row[i], added[i]);
    }
    const float sum_of_page = tree_sum(lanes);
    if (value.empty()) {
      maximum = most, sum = sum_of_page, value = added;
      continue;
    }
    const float before = most > maximum ? exp_f32(maximum - most) : 1.0f;
    const float factor = most > maximum ? 1.0f : exp_f32(most - maximum);
    maximum = std::max(maximum, most);
    sum = sum * before + sum_of_page * factor;
    for (size_t i = 0; i < columns; ++i) value[i] = std::fma(value[i], before, added[i] * factor);
  }
  float before = 1.0f;
  if (sink != nullptr) {
    before = *sink > maximum ? exp_f32(maximum - *sink) : 1.0f;
    sum = sum * before + (*sink > maximum ? 1.0f : exp_f32(*sink - maximum));
  }
  for (float& element : value) element = element * before / sum;
  return value;
}

// One column of a token's streams.
inline float sum_of_streams(const std::vector<float>& streams, const float* weights) {
  float sum = 0.0f;
  for (size_t s = 0; s < streams.size(); ++s) sum = std::fma(weights[s], streams[s], sum);
  return sum;
}
inline std::vector<float> changed_streams(const std::vector<float>& streams, float x,
                                          const float* post, const float* mix) {
  const size_t count = streams.size();
  std::vector<float> changed;
  for (size_t to = 0; to < count; ++to) {
    float sum = post[to] * x;
    for (size_t from = 0; from < count; ++from) {
      sum = std::fma(mix[from * count + to], streams[from], sum);
    }
    changed.push_back(sum);
  }
  return changed;
}

// One column of a token's streams that get a part of x each, without being mixed.
inline std::vector<float> injected_streams(std::vector<float> streams, float x, const float* post) {
  for (size_t s = 0; s < streams.size(); ++s) streams[s] = std::fma(post[s], x, streams[s]);
  return streams;
}

// By how much a stream is opened.
inline float match(const std::vector<float>& key, const std::vector<float>& query) {
  std::vector<float> lanes(128, 0.0f);
  for (size_t c = 0; c < key.size(); ++c) {
    lanes[c % 128] = std::fma(key[c], query[c], lanes[c % 128]);
  }
  const float g = tree_sum(lanes) / std::sqrt(static_cast<float>(key.size()));
  if (std::fabs(g) < 0x1p-126f) return sigmoid_f32(0.0f);
  const float size = std::fabs(g) < 1e-6f ? 1e-6f : std::fabs(g);
  return sigmoid_f32(std::copysign(std::sqrt(size), g));
}

// One column of an entry without gates.
inline float plain_mean(const std::vector<float>& values) {
  float sum = values[0];
  for (size_t m = 1; m < values.size(); ++m) sum += values[m];
  return sum / static_cast<float>(values.size());
}

// One channel: its inputs from the oldest to the newest one.
inline float convolution(const std::vector<float>& inputs, const std::vector<float>& weights) {
  float sum = 0.0f;
  for (size_t tap = 0; tap < inputs.size(); ++tap) {
    sum = std::fma(weights[tap], inputs[tap], sum);
  }
  return sum * sigmoid_f32(sum);
}

// One token of one head: changes the state, (rows, columns), and returns the output.
inline std::vector<float> delta_rule(std::vector<float>& state, const std::vector<float>& query,
                                     const std::vector<float>& key, const std::vector<float>& value,
                                     const std::vector<float>& decays, float rate) {
  const size_t columns = value.size();
  std::vector<float> output;
  for (size_t j = 0; j < columns; ++j) {
    float known = 0.0f, sum = 0.0f;
    for (size_t i = 0; i < key.size(); ++i) {
      float& element = state[i * columns + j];
      element = element * decays[decays.size() == 1 ? 0 : i];
      known = std::fma(element, key[i], known);
    }
    const float change = (value[j] - known) * rate;
    for (size_t i = 0; i < key.size(); ++i) {
      float& element = state[i * columns + j];
      element = std::fma(key[i], change, element);
      sum = std::fma(element, query[i], sum);
    }
    output.push_back(sum);
  }
  return output;
}

// Activations of one block as integers; they are finite.
inline InputBlock8 input_block(const float* x, int count) {
  InputBlock8 block = {};
  float most = 0.0f;
  for (int i = 0; i < count; ++i) most = std::max(most, std::fabs(x[i]));
  if (most < 0x1p-100f) return block;
  block.scale = most / 127.0f;
  const float factor = 127.0f / most;
  for (int i = 0; i < count; ++i) {
    const auto code = static_cast<int8_t>(std::nearbyint(x[i] * factor));
    block.codes[i] = code;
    block.half_sums[i / 16] += code;
    block.sum += code;
  }
  return block;
}

inline bool is_halved(PackedScales scales) {
  return scales == PackedScales::kE4M3Halves || scales == PackedScales::kSuperHalves ||
         scales == PackedScales::kSuperMinHalves;
}
inline bool has_zero(PackedScales scales) {
  return scales == PackedScales::kF32Zero || scales == PackedScales::kF16Zero ||
         scales == PackedScales::kBF16Zero;
}
inline bool has_bias(PackedScales scales) {
  return scales == PackedScales::kF32Bias || scales == PackedScales::kF16Bias ||
         scales == PackedScales::kBF16Bias || scales == PackedScales::kSuperMin ||
         scales == PackedScales::kSuperMinHalves;
}

// T of the page: a block or half of one, from its dot product D and its input's sum S.
inline float block_term(PackedScales scales, const QuantisedWeight& weight, float D, float S) {
  const auto scale = static_cast<float>(weight.scale);
  if (has_zero(scales)) {
    const double zero = weight.scale == 0.0 ? 0.0 : -weight.bias / weight.scale;
    return scale * std::fma(static_cast<float>(-zero), S, D);
  }
  const float product = scale * D;
  return has_bias(scales) ? std::fma(static_cast<float>(weight.bias), S, product) : product;
}

// Adds columns [begin, end) of block `columns` in a row: the whole block or a half of it.
inline float add_integers(float chain, const QuantisedMatrix& matrix, int row, BlockColumns columns,
                          int begin, int end, const InputBlock8& x) {
  int dot = 0, sum = 0;
  for (int i = begin; i < std::min(end, columns.count); ++i) {
    dot += static_cast<int>(matrix.at(row, columns.begin + i).code) * x.codes[i];
    sum += x.codes[i];
  }
  const QuantisedWeight& weight = matrix.at(row, columns.begin + begin);
  const float term =
      block_term(matrix.format().scales, weight, static_cast<float>(dot), static_cast<float>(sum));
  return std::fma(term, x.scale, chain);
}

// The same with activations in float32.
inline float add_floats(float chain, const QuantisedMatrix& matrix, int row, BlockColumns columns,
                        int begin, int end, const float* x) {
  const bool is_fp8 = matrix.format().codes == PackedCodes::kFp8;
  float dot = 0.0f;
  for (int i = begin; i < std::min(end, columns.count); ++i) {
    const double code = matrix.at(row, columns.begin + i).code;
    dot = std::fma(static_cast<float>(is_fp8 ? code / 256 : code), x[i], dot);
  }
  if (is_fp8) dot *= 256.0f;
  float sums[2] = {};
  for (int half = 0; half < 2; ++half) {
    std::vector<float> lanes(16, 0.0f);
    for (int i = 16 * half; i < std::min(16 * half + 16, columns.count); ++i) {
      lanes[static_cast<size_t>(i % 16)] = x[i];
    }
    sums[half] = tree_sum(lanes);
  }
  const bool is_whole = end - begin == kBlockColumns;
  const float sum = is_whole ? sums[0] + sums[1] : sums[begin / 16];
  const QuantisedWeight& weight = matrix.at(row, columns.begin + begin);
  return chain + block_term(matrix.format().scales, weight, dot, sum);
}

// A block of a row, times `x`: the activations of its columns.
inline float add_block(float chain, const QuantisedMatrix& matrix, int row, BlockColumns columns,
                       const float* x) {
  const int step = is_halved(matrix.format().scales) ? kBlockColumns / 2 : kBlockColumns;
  for (int begin = 0; begin < columns.count; begin += step) {
    chain = matrix.format().has_integer_input
                ? add_integers(chain, matrix, row, columns, begin, begin + step,
                               input_block(x, columns.count))
                : add_floats(chain, matrix, row, columns, begin, begin + step, x);
  }
  return chain;
}

// The outputs of one row, one for each subtree: leaf(step, column) is the sum of the leaf whose
// first column is `column`.
template <class Leaf>
std::vector<float> add_leaves(const std::vector<LeafStep>& steps, Leaf leaf) {
  std::vector<float> stack, outputs;
  int column = 0;
  for (const LeafStep& step : steps) {
    float sum = leaf(step, column);
    column += step.columns;
    for (int merge = 0; merge < step.merges; ++merge) {
      sum = stack.back() + sum;
      stack.pop_back();
    }
    if (step.ends_subtree != 0) {
      outputs.push_back(sum);
    } else {
      stack.push_back(sum);
    }
  }
  return outputs;
}

// Row `row` of a quantised matrix times `x`, (columns).
inline std::vector<float> multiply(const QuantisedMatrix& matrix, int row, const float* x) {
  size_t block = 0;
  return add_leaves(matrix.steps(), [&](const LeafStep& step, int column) {
    float chain = 0.0f;
    for (const int end = column + step.columns;
         block < matrix.blocks().size() && matrix.blocks()[block].begin < end; ++block) {
      const BlockColumns columns = matrix.blocks()[block];
      chain = add_block(chain, matrix, row, columns, x + columns.begin);
    }
    return chain;
  });
}

}  // namespace lockstep::definition
