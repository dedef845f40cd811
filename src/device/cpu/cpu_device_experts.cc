// How the CPU chooses the experts of a layer and runs their gates and ups. The matrices are cut
// into pieces for the team.
#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.h"
#include "device/cpu/cpu_device.h"
#include "device/cpu/router.h"

namespace lockstep {
void CpuDevice::run(const Route& op) {
  const auto tokens = static_cast<size_t>(op.tokens), experts = static_cast<size_t>(op.experts);
  const auto chosen = static_cast<size_t>(op.chosen);
  float* scores = floats(op.scores, tokens * experts);
  const float* bias = op.has_bias() ? floats(op.bias, experts) : nullptr;
  const float* given = op.has_given ? floats(op.given, tokens * chosen) : nullptr;
  const float* scales = op.has_scales ? floats(op.scales, experts) : nullptr;
  auto* output = reinterpret_cast<int32_t*>(place(op.output, tokens * chosen));
  float* weights = floats(op.weights, tokens * chosen);
  const RouterRule rule{.experts = op.experts,
                        .chosen = op.chosen,
                        .form = op.form,
                        .groups = op.groups,
                        .chosen_groups = op.chosen_groups,
                        .normalises = op.normalises,
                        .factor = op.factor};
  for (size_t token = 0; token < tokens; ++token) {
    const size_t at = token * chosen;
    if (given != nullptr) {
      weigh_experts(rule, scores + token * experts, given + at, scales, output + at, weights + at);
    } else {
      choose_experts(rule, scores + token * experts, bias, scales, output + at, weights + at);
    }
  }
}

// A round of tokens, for its pieces. Rows of gates and ups are ordered by expert.
struct CpuDevice::ExpertsUpRound {
  const ExpertsUp& op;
  size_t ffn;
  const int32_t* chosen;
  const float* weights;
  float* gates;
  float* ups;
  float* output;
  Input gate_rows;
  Input up_rows;
};

void CpuDevice::run(const ExpertsUp& op) {
  const Matrix& gate = matrix(op.matrices->gate[0]);
  const Matrix& up = matrix(op.matrices->up[0]);
  const bool has_shared = op.has_shared && !matrix(op.shared.gate).is_empty();
  if (gate.is_empty()) {  // a rank without a share of the experts
    if (has_shared) run(op.shared);
    return;
  }
  if (op.tokens == 0) return;
  Forms forms;
  const bool is_one_form = forms.add(gate) == forms.add(up);
  Gated shared;
  if (has_shared) shared = open_gated(op.shared, forms);
  // Each token's input is followed by the copies that its experts read.
  const size_t copy = gate.input_bytes() + (is_one_form ? 0 : up.input_bytes());
  const int round = tokens_in_scratch(forms.bytes + copy * static_cast<size_t>(op.chosen_count));
  for (int begin = 0; begin < op.tokens; begin += round) {
    run_experts_up(op, {begin, std::min(op.tokens, begin + round)}, forms,
                   has_shared ? &shared : nullptr);
  }
}

// One section of the team for all experts: a piece is some rows of an expert's gate and up, or of
// the shared expert's.
void CpuDevice::run_experts_up(const ExpertsUp& op, IndexRange tokens, Forms& forms,
                               const Gated* shared) {
  const auto count = static_cast<size_t>(tokens.size()),
             skipped = static_cast<size_t>(tokens.begin);
  const auto chosen_count = static_cast<size_t>(op.chosen_count);
  const size_t all = static_cast<size_t>(op.tokens) * chosen_count;
  const Matrix& gate = matrix(op.matrices->gate[0]);
  const Matrix& up = matrix(op.matrices->up[0]);
  const size_t ffn = gate.rows(), columns = gate.columns();
  float* products = floats(op.scratch, 2 * all * ffn);
  ExpertsUpRound round{.op = op,
                       .ffn = ffn,
                       .chosen = ints(op.chosen, all) + skipped * chosen_count,
                       .weights = floats(op.weights, all) + skipped * chosen_count,
                       .gates = products,
                       .ups = products + all * ffn,
                       .output = floats(op.output, all * ffn) + skipped * chosen_count * ffn};
  expert_order_.sort({round.chosen, count * chosen_count},
                     static_cast<int>(op.matrices->gate.size()));
  const float* input = floats(op.input, static_cast<size_t>(op.tokens) * columns);
  prepare(forms, input + skipped * columns, columns, tokens.size());
  const size_t gate_form = forms.add(gate), up_form = forms.add(up);
  std::byte* rows = scratch_->data() + count * forms.bytes;
  round.gate_rows = round.up_rows = rows_by_expert(gate, forms.inputs[gate_form], count, rows);
  if (up_form != gate_form) {
    rows += count * chosen_count * gate.input_bytes();
    round.up_rows = rows_by_expert(up, forms.inputs[up_form], count, rows);
  }

  const std::span<const ExpertOrder::Run> runs = expert_order_.runs();
  const int size = piece_tiles(static_cast<int>(runs.size()) * gate.tiles());
  const int each = gate.piece_count(size), of_experts = static_cast<int>(runs.size()) * each;
  const int of_shared = shared ? shared->gate.matrix->piece_count(size) : 0;
  const auto gate_of_piece = [&](int piece) -> const std::byte* {
    if (piece >= of_experts) return nullptr;
    const auto expert = static_cast<size_t>(runs[static_cast<size_t>(piece / each)].expert);
    return matrix(op.matrices->gate[expert]).tile(piece % each * size);
  };
  const auto run_piece = [&](int piece) {
    if (piece < of_experts) {
      const int own = piece % each;
      return run_expert_piece(round, runs[static_cast<size_t>(piece / each)],
                              gate.tiles_of({own, own + 1}, size), gate_of_piece(piece + 1));
    }
    const int own = piece - of_experts;
    run_gated(*shared, forms, shared->gate.matrix->tiles_of({own, own + 1}, size), tokens);
  };
  pieces(of_experts + of_shared, static_cast<size_t>(2 * size * kLanes) * columns,
         chunks_for(tokens.size()), run_piece);
}

// The input of each slot, ordered by expert: row i is the token of slot i of the order.
CpuDevice::Input CpuDevice::rows_by_expert(const Matrix& m, Input prepared, size_t tokens,
                                           std::byte* rows) {
  if (tokens == 1) return {prepared.data, 0};  // one row for all
  const std::span<const int32_t> order = expert_order_.slots();
  const size_t bytes = m.input_bytes(), chosen_count = order.size() / tokens;
  parallel(static_cast<int>(order.size()), bytes / 4, [&](int begin, int end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      const size_t token = static_cast<size_t>(order[i]) / chosen_count;
      std::memcpy(rows + i * bytes, prepared.of(token), bytes);
    }
  });
  return {rows, bytes};
}

// Some rows of an expert's gate and up for all of its tokens, and the input of its down matrix.
void CpuDevice::run_expert_piece(const ExpertsUpRound& round, const ExpertOrder::Run& run,
                                 IndexRange tiles, const std::byte* next) const {
  const size_t ffn = round.ffn, begin = static_cast<size_t>(tiles.begin) * kLanes;
  const size_t count = std::min(ffn, static_cast<size_t>(tiles.end) * kLanes) - begin;
  const auto expert = static_cast<size_t>(run.expert);
  const ExpertMatrices& matrices = *round.op.matrices;
  const Matrix &gates = matrix(matrices.gate[expert]), &ups = matrix(matrices.up[expert]);
  const auto multiply_rows = [&](const Matrix& m, Input rows, float* to, const std::byte* next) {
    multiply(m, {rows.of(run.begin), rows.stride}, tiles, static_cast<int>(run.size()),
             to + run.begin * ffn, 0, next);
  };
  multiply_rows(gates, round.gate_rows, round.gates, ups.tile(tiles.begin));
  multiply_rows(ups, round.up_rows, round.ups, next);
  for (size_t i = run.begin; i < run.end; ++i) {
    const auto slot = static_cast<size_t>(expert_order_.slots()[i]);
    float* gate = round.gates + i * ffn + begin;
    activate(round.op, expert * ffn + begin, count, gate, round.ups + i * ffn + begin);
    float* values = round.output + slot * ffn + begin;
    for (size_t k = 0; k < count; ++k) values[k] = gate[k] * round.weights[slot];
  }
}

// Joins `count` products in place of `gate`.
void CpuDevice::activate(const ExpertsUp& op, size_t first_bias, size_t count, float* gate,
                         float* up) const {
  if (op.has_bias) {
    kernels_.add(floats(op.gate_bias, first_bias + count) + first_bias, gate, count);
    kernels_.add(floats(op.up_bias, first_bias + count) + first_bias, up, count);
  }
  join(op.activation, op.limit, gate, up, count);
}

void CpuDevice::run(const AddExpertBias& op) {
  const auto tokens = static_cast<size_t>(op.tokens), columns = static_cast<size_t>(op.columns);
  const auto chosen_count = static_cast<size_t>(op.chosen_count);
  const int32_t* chosen = ints(op.chosen, tokens * chosen_count);
  const float* weights = floats(op.weights, tokens * chosen_count);
  const float* biases = floats(op.bias, static_cast<size_t>(op.experts) * columns);
  float* x = floats(op.x, tokens * columns);
  for (size_t token = 0; token < tokens; ++token) {
    for (size_t column = 0; column < columns; ++column) {
      float sum = 0;
      for (size_t slot = token * chosen_count; slot < (token + 1) * chosen_count; ++slot) {
        sum += weights[slot] * biases[static_cast<size_t>(chosen[slot]) * columns + column];
      }
      x[token * columns + column] += sum;
    }
  }
}

}  // namespace lockstep
