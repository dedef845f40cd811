// The plan of the experts of a layer.
#include <algorithm>

#include "base/check.h"
#include "device/gpu/emit.h"
#include "device/gpu/plan.h"

namespace lockstep::gpu {

// Those of all experts; or none.
std::pair<MemoryRange, MemoryRange> Planner::expert_biases(const ExpertsUp& op) const {
  if (!op.has_bias) return {};
  const auto rows = static_cast<size_t>(memory_.matrix(op.matrices->gate[0]).rows);
  const auto bias_of = [&](Slice biases) {
    MemoryRange range = memory_.place(biases, op.matrices->gate.size() * rows);
    range.is_partial = true;  // those of the chosen experts
    return range;
  };
  return {bias_of(op.gate_bias), bias_of(op.up_bias)};
}

// A dispatch for the products of some tokens, and one for the activation.
void Planner::plan_experts_apart(const ExpertsUp& op, size_t begin, size_t count) {
  const PlanMatrix& gate = memory_.matrix(op.matrices->gate[0]);
  const PlanMatrix& up = memory_.matrix(op.matrices->up[0]);
  const auto chosen_count = static_cast<size_t>(op.chosen_count);
  const size_t all = static_cast<size_t>(op.tokens) * chosen_count;
  const size_t first = begin * chosen_count, items = count * chosen_count;
  const auto rows = static_cast<size_t>(gate.rows), columns = static_cast<size_t>(gate.columns);
  const MemoryRange chosen = rows_at(op.chosen, first, items, 1);
  const MemoryRange weights = rows_at(op.weights, first, items, 1);
  const MemoryRange products = memory_.place(op.scratch, 2 * all * rows);
  const MemoryRange output = rows_at(op.output, first, items, rows);
  size_t scratch_used = 0;
  const RowsOfInput input{op.input, begin, count, columns};
  const Prepared of_gate = prepare(gate, input, scratch_used);
  const Prepared of_up = gate.shares_input_with(up) ? of_gate : prepare(up, input, scratch_used);
  MatmulParams params{.chosen = chosen.begin,
                      .items = static_cast<uint32_t>(items),
                      .slots = static_cast<uint32_t>(chosen_count)};
  const MemoryRange gates{products.begin + first * rows * 4, items * rows * 4};
  const MemoryRange ups{gates.begin + all * rows * 4, gates.bytes};
  const auto tiles = static_cast<uint32_t>(gate.tiles());
  params.products[0] = {.matrix = memory_.table(op.matrices->gate),
                        .x = of_gate.x,
                        .outputs = gates.begin,
                        .x_stride = of_gate.stride,
                        .tile_end = tiles,
                        .item_stride = static_cast<uint32_t>(rows)};
  params.products[1] = {.matrix = memory_.table(op.matrices->up),
                        .x = of_up.x,
                        .outputs = ups.begin,
                        .x_stride = of_up.stride,
                        .tile_end = 2 * tiles,
                        .item_stride = static_cast<uint32_t>(rows)};
  const std::array matrices{&gate, &up};
  emit_matmul(matmul_variant(matrices, kOneExpert, items), params, 2 * gate.tiles(),
              items * (gate.bytes + up.bytes), {of_gate.range, of_up.range, chosen}, {gates, ups});
  const auto [gate_bias, up_bias] = expert_biases(op);
  activate({.gate = gates.begin,
            .up = ups.begin,
            .outputs = output.begin,
            .chosen = chosen.begin,
            .join = {.gate_bias = gate_bias.begin,
                     .up_bias = up_bias.begin,
                     .weights = weights.begin,
                     .columns = static_cast<uint32_t>(rows),
                     .activation = static_cast<uint32_t>(op.activation),
                     .limit = op.limit},
            .rows = static_cast<uint32_t>(items),
            .up_stride = static_cast<uint32_t>(rows)},
           {gates, ups, gate_bias, up_bias, chosen, weights}, output,
           items == all ? user_of(op.output) : nullptr);
}

void Planner::plan(const ExpertsDown& op) {
  const PlanMatrix& first = memory_.matrix(op.matrices->down[0]);
  const auto tokens = static_cast<size_t>(op.tokens);
  if (first.is_empty() || tokens == 0) return;
  size_t words = static_cast<size_t>(op.chosen_count) * first.prepared_words();
  if (op.has_shared) words += memory_.matrix(op.shared).prepared_words();
  const size_t round = round_of(tokens, words);
  for (size_t begin = 0; begin < tokens; begin += round) {
    plan_experts_down(op, begin, std::min(round, tokens - begin));
  }
}

void Planner::plan_experts_down(const ExpertsDown& op, size_t begin, size_t count) {
  const PlanMatrix& first = memory_.matrix(op.matrices->down[0]);
  const PlanMatrix* shared = op.has_shared ? &memory_.matrix(op.shared) : nullptr;
  const auto chosen_count = static_cast<size_t>(op.chosen_count);
  const auto tokens = static_cast<size_t>(op.tokens), rows = static_cast<size_t>(first.rows);
  const MemoryRange chosen = rows_at(op.chosen, begin * chosen_count, count * chosen_count, 1);
  size_t scratch_used = 0;
  const Prepared input = prepare(
      first,
      {op.input, begin * chosen_count, count * chosen_count, static_cast<size_t>(first.columns)},
      scratch_used);
  Prepared of_shared;
  if (shared != nullptr) {
    of_shared =
        prepare(*shared, {op.shared_input, begin, count, static_cast<size_t>(shared->columns)},
                scratch_used);
  }
  const MemoryRange output =
      memory_.place(op.output, static_cast<size_t>(first.subtrees) * tokens * rows);
  MatmulParams params{.chosen = chosen.begin,
                      .shared_matrix = shared != nullptr ? shared->info : 0,
                      .shared_x = of_shared.x,
                      .shared_stride = of_shared.stride,
                      .items = static_cast<uint32_t>(count),
                      .slots = static_cast<uint32_t>(chosen_count)};
  params.products[0] = {.matrix = memory_.table(op.matrices->down),
                        .x = input.x,
                        .outputs = output.begin + begin * rows * 4,
                        .x_stride = input.stride,
                        .tile_end = static_cast<uint32_t>(first.tiles()),
                        .item_stride = static_cast<uint32_t>(rows),
                        .subtree_stride = static_cast<uint32_t>(tokens * rows)};
  const std::array matrices{&first, shared != nullptr ? shared : &first};
  emit_matmul(matmul_variant(matrices, kAllExperts, count), params, first.tiles(),
              count * (chosen_count * first.bytes + (shared != nullptr ? shared->bytes : 0)),
              {input.range, of_shared.range, chosen}, {output});
}

}  // namespace lockstep::gpu
