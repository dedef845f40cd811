// How the CPU runs the experts of a layer. The matrices are cut into pieces for the team.
#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.h"
#include "device/cpu/cpu_device.h"
#include "device/cpu/router.h"

namespace lockstep {
namespace {

constexpr int kTilesOfPiece = 8;

int pieces_of(int tiles) {
  return (tiles + kTilesOfPiece - 1) / kTilesOfPiece;
}

}  // namespace

void CpuDevice::run(const Route& op) {
  const auto tokens = static_cast<size_t>(op.tokens), experts = static_cast<size_t>(op.experts);
  const auto chosen = static_cast<size_t>(op.chosen);
  float* scores = floats(op.scores, tokens * experts);
  const float* bias = op.is_sigmoid ? floats(op.bias, experts) : nullptr;
  auto* output = reinterpret_cast<int32_t*>(place(op.output, tokens * chosen));
  float* weights = floats(op.weights, tokens * chosen);
  const RouterRule rule{.experts = op.experts,
                        .chosen = op.chosen,
                        .is_sigmoid = op.is_sigmoid,
                        .groups = op.groups,
                        .chosen_groups = op.chosen_groups,
                        .normalises = op.normalises,
                        .factor = op.factor};
  for (size_t token = 0; token < tokens; ++token) {
    choose_experts(rule, scores + token * experts, bias, output + token * chosen,
                   weights + token * chosen);
  }
}

void CpuDevice::run(const ExpertsUp& op) {
  const Matrix& first = matrix(op.matrices->gate[0]);
  if (first.is_empty() || op.tokens == 0) return;  // a rank without a share of the experts
  // Each token's input is followed by the copies that its experts read. Gate and up matrices may
  // take it in different forms; then the two forms use the memory in turn.
  const size_t bytes = std::max(first.input_bytes(), matrix(op.matrices->up[0]).input_bytes());
  const int round = tokens_in_scratch(bytes * (1 + static_cast<size_t>(op.chosen_count)));
  for (int begin = 0; begin < op.tokens; begin += round) {
    run_experts_up(op, begin, std::min(op.tokens, begin + round));
  }
}

void CpuDevice::run_experts_up(const ExpertsUp& op, int begin, int end) {
  const auto tokens = static_cast<size_t>(end - begin), skipped = static_cast<size_t>(begin);
  const auto chosen_count = static_cast<size_t>(op.chosen_count);
  const size_t slots = tokens * chosen_count;
  const Matrix& first = matrix(op.matrices->gate[0]);
  const size_t ffn = first.rows(), columns = first.columns();
  const size_t all = static_cast<size_t>(op.tokens) * chosen_count;
  const int32_t* chosen = ints(op.chosen, all) + skipped * chosen_count;
  const float* weights = floats(op.weights, all) + skipped * chosen_count;
  const float* input =
      floats(op.input, static_cast<size_t>(op.tokens) * columns) + skipped * columns;
  float* gates = floats(op.scratch, 2 * all * ffn);
  float* ups = gates + all * ffn;
  float* output = floats(op.output, all * ffn) + skipped * chosen_count * ffn;

  expert_order_.sort({chosen, slots}, static_cast<int>(op.matrices->gate.size()));
  const std::span<const int32_t> order = expert_order_.slots();
  const std::span<const ExpertOrder::Run> runs = expert_order_.runs();
  const auto multiply = [&](const std::vector<MatrixId>& matrices, const Input& rows,
                            float* products) {
    const int tiles = tile_count(matrix(matrices[0]).packed.rows), pieces = pieces_of(tiles);
    const auto items = static_cast<int>(runs.size()) * pieces;
    in_chunks(items, 1, [&](int item_begin, int item_end) {
      for (int item = item_begin; item < item_end; ++item) {
        const ExpertOrder::Run& run = runs[static_cast<size_t>(item / pieces)];
        const Matrix& m = matrix(matrices[static_cast<size_t>(run.expert)]);
        const MatmulPart part = part_of(m, rows.of(run.begin), rows.stride);
        const int tile = item % pieces * kTilesOfPiece;
        kernels_.matmul({.parts = &part,
                         .part_count = 1,
                         .tile_begin = tile,
                         .tile_end = std::min(tiles, tile + kTilesOfPiece),
                         .tokens = static_cast<int>(run.size()),
                         .output = products + run.begin * ffn,
                         .token_stride = ffn});
      }
    });
  };
  const Matrix& up = matrix(op.matrices->up[0]);
  const auto rows_for = [&](const Matrix& any) {
    return rows_by_expert(any, input, static_cast<int>(tokens), order, chosen_count);
  };
  const Input rows = rows_for(first);
  multiply(op.matrices->gate, rows, gates);
  multiply(op.matrices->up, first.shares_input_with(up) ? rows : rows_for(up), ups);
  in_chunks(static_cast<int>(slots), 1, [&](int slot_begin, int slot_end) {
    for (auto i = static_cast<size_t>(slot_begin); i < static_cast<size_t>(slot_end); ++i) {
      const auto slot = static_cast<size_t>(order[i]);
      float* values = output + slot * ffn;
      activate(op, static_cast<size_t>(chosen[slot]), ffn, gates + i * ffn, ups + i * ffn);
      for (size_t k = 0; k < ffn; ++k) values[k] = gates[i * ffn + k] * weights[slot];
    }
  });
}

// The input of each slot, ordered by expert: row i is the token of slot order[i].
CpuDevice::Input CpuDevice::rows_by_expert(const Matrix& m, const float* input, int tokens,
                                           std::span<const int32_t> order, size_t chosen_count) {
  const Input prepared = prepare(m, input, m.columns(), tokens, scratch_->data());
  if (tokens == 1) return {prepared.data, 0};  // one row for all
  const size_t bytes = m.input_bytes();
  std::byte* rows = scratch_->data() + static_cast<size_t>(tokens) * bytes;
  parallel(static_cast<int>(order.size()), bytes / 4, [&](int begin, int end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      const size_t token = static_cast<size_t>(order[i]) / chosen_count;
      std::memcpy(rows + i * bytes, prepared.of(token), bytes);
    }
  });
  return {rows, bytes};
}

// Turns one expert's products `gate` and `up` into the input of its down matrix, in place of
// `gate`.
void CpuDevice::activate(const ExpertsUp& op, size_t expert, size_t ffn, float* gate,
                         float* up) const {
  if (op.has_bias) {
    const size_t biases = op.matrices->gate.size() * ffn;
    kernels_.add(floats(op.gate_bias, biases) + expert * ffn, gate, ffn);
    kernels_.add(floats(op.up_bias, biases) + expert * ffn, up, ffn);
  }
  if (op.activation == Activation::kClampedSwiglu) {
    kernels_.clamped_swiglu(gate, up, op.limit, gate, ffn);
  } else {
    kernels_.silu_mul(gate, up, gate, ffn);
  }
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

void CpuDevice::run(const ExpertsDown& op) {
  const Matrix& first = matrix(op.matrices->down[0]);
  if (first.is_empty() || op.tokens == 0) return;
  LOCKSTEP_CHECK(op.chosen_count < kMatmulPartsMax);
  const size_t shared_bytes = op.has_shared ? matrix(op.shared).input_bytes() : 0;
  const int round =
      tokens_in_scratch(first.input_bytes() * static_cast<size_t>(op.chosen_count) + shared_bytes);
  for (int begin = 0; begin < op.tokens; begin += round) {
    run_experts_down(op, begin, std::min(op.tokens, begin + round));
  }
}

// A token's experts form one chain in each leaf, so tokens cannot share a register block; but all
// tokens go through a few tiles of all experts while these are in the cache.
void CpuDevice::run_experts_down(const ExpertsDown& op, int begin, int end) {
  const auto chosen_count = static_cast<size_t>(op.chosen_count);
  const auto all = static_cast<size_t>(op.tokens), skipped = static_cast<size_t>(begin);
  const int tokens = end - begin;
  const Matrix& first = matrix(op.matrices->down[0]);
  const int32_t* chosen = ints(op.chosen, all * chosen_count) + skipped * chosen_count;
  const float* input = floats(op.input, all * chosen_count * first.columns());
  const Input rows = prepare(first, input + skipped * chosen_count * first.columns(),
                             first.columns(), tokens * op.chosen_count, scratch_->data());
  Input shared_rows{};
  if (op.has_shared) {
    const Matrix& shared = matrix(op.shared);
    const float* from = floats(op.shared_input, all * shared.columns());
    shared_rows = prepare(
        shared, from + skipped * shared.columns(), shared.columns(), tokens,
        scratch_->data() + static_cast<size_t>(tokens) * chosen_count * first.input_bytes());
  }
  float* output = floats(op.output, first.layout->subtrees * all * first.rows());
  const int tiles = tile_count(first.packed.rows), pieces = pieces_of(tiles);
  in_chunks(tokens * pieces, 1, [&](int item_begin, int item_end) {
    for (int item = item_begin; item < item_end; ++item) {
      const auto token = static_cast<size_t>(item % tokens);
      std::array<MatmulPart, kMatmulPartsMax> parts;
      size_t count = 0;
      for (size_t i = token * chosen_count; i < (token + 1) * chosen_count; ++i) {
        const Matrix& m = matrix(op.matrices->down[static_cast<size_t>(chosen[i])]);
        parts[count++] = part_of(m, rows.of(i), 0);
      }
      if (op.has_shared) parts[count++] = part_of(matrix(op.shared), shared_rows.of(token), 0);
      const int tile = item / tokens * kTilesOfPiece;
      kernels_.matmul({.parts = parts.data(),
                       .part_count = static_cast<int32_t>(count),
                       .tile_begin = tile,
                       .tile_end = std::min(tiles, tile + kTilesOfPiece),
                       .tokens = 1,
                       .output = output + (skipped + token) * first.rows(),
                       .token_stride = first.rows(),
                       .subtree_stride = all * first.rows()});
    }
  });
}

}  // namespace lockstep
