// The plan of gates and ups, and of the experts': their products end with their activation where a
// workgroup can have whole blocks of the result.
#include <algorithm>

#include "base/check.h"
#include "device/gpu/emit.h"
#include "device/gpu/plan.h"

namespace lockstep::gpu {
namespace {

static_assert(kTilesOfBlock * kTileRows == kColumnsOfBlock);

bool have_one_format(const PlanMatrix& a, const PlanMatrix& b) {
  return a.codes == b.codes && a.scales == b.scales && a.shares_input_with(b);
}

uint32_t blocks_of_result(const PlanMatrix& gate) {
  return static_cast<uint32_t>(gate.rows) / kColumnsOfBlock;
}

// Rows [first, first + count) of `all`, which has rows of `bytes`.
MemoryRange some_rows(const MemoryRange& all, size_t first, size_t count, size_t bytes) {
  return all.bytes == 0 ? MemoryRange{} : MemoryRange{all.begin + first * bytes, count * bytes};
}

// A gate and an up, each a product; or the tables of the experts'.
struct GatePair {
  Address gate;
  Address up;
  Address x;
  uint32_t x_stride;
};
void put_pair(const GatePair& pair, uint32_t block_end, Product* products) {
  products[0] = {
      .matrix = pair.gate, .x = pair.x, .x_stride = pair.x_stride, .tile_end = block_end};
  products[1] = products[0];
  products[1].matrix = pair.up;
}

}  // namespace

bool Planner::ends_activated(const PlanMatrix& gate, const PlanMatrix& up,
                             const PlanMatrix* user) const {
  const bool has_blocks = have_one_format(gate, up) && gate.subtrees == 1 && up.subtrees == 1 &&
                          gate.rows % static_cast<int>(kColumnsOfBlock) == 0;
  const bool suits_user = user == nullptr || user->columns != gate.rows || user->has_whole_blocks();
  return options_.ends_blocks && has_blocks && suits_user;
}

Planner::EndedRows Planner::ended_rows(Slice output, size_t rows, size_t columns) {
  const MemoryRange y = rows_at(output, 0, rows, columns);
  return {y, columns, room_for(user_of(output), y, rows, columns, columns)};
}

MemoryRange Planner::EndedRows::outputs(size_t first, size_t count) const {
  return some_rows(output, first, count, columns * 4);
}
MemoryRange Planner::EndedRows::blocks(size_t first, size_t count) const {
  return some_rows(prepared.prepared.range, first, count, size_t{prepared.prepared.stride} * 4);
}
ProductEnd Planner::EndedRows::end(size_t first, Activation activation, float limit) const {
  return {.outputs = outputs(first, 1).begin,
          .blocks = blocks(first, 1).begin,
          .join = {.columns = static_cast<uint32_t>(columns),
                   .activation = static_cast<uint32_t>(activation),
                   .limit = limit}};
}

void Planner::plan(const GatedUp& op) {
  const PlanMatrix &gate = memory_.matrix(op.gate), &up = memory_.matrix(op.up);
  if (gate.is_empty() || op.tokens == 0) return;
  LOCKSTEP_CHECK(gate.rows == up.rows && gate.columns == up.columns);
  if (!ends_activated(gate, up, user_of(op.output))) return plan_gated_apart(op);
  const auto tokens = static_cast<size_t>(op.tokens);
  const EndedRows to = ended_rows(op.output, tokens, static_cast<size_t>(gate.rows));
  const size_t round = round_of(tokens, gate.prepared_words());
  for (size_t begin = 0; begin < tokens; begin += round) {
    const size_t count = std::min(round, tokens - begin);
    size_t scratch_used = 0;
    const Prepared input =
        prepare(gate, {op.input, begin, count, static_cast<size_t>(gate.columns)}, scratch_used);
    MatmulParams params{.items = static_cast<uint32_t>(count), .slots = 1};
    put_pair({gate.info, up.info, input.x, input.stride}, blocks_of_result(gate), params.products);
    params.ends[0] = to.end(begin, op.activation, op.limit);
    const std::array matrices{&gate};
    emit_matmul(matmul_variant(matrices, kOneMatrix, count, {kEndsActivated, to.prepared.form}),
                params, blocks_of_result(gate), gate.bytes + up.bytes, {input.range},
                {to.outputs(begin, count), to.blocks(begin, count)});
  }
  keep(to.prepared);
}

// A dispatch for the products, and one for the activation.
void Planner::plan_gated_apart(const GatedUp& op) {
  const PlanMatrix& gate = memory_.matrix(op.gate);
  plan(Matmul{.input = op.input,
              .tokens = op.tokens,
              .products = {{op.gate, op.output}, {op.up, op.scratch}},
              .count = 2});
  const MemoryRange gates =
      rows_at(op.output, 0, static_cast<size_t>(op.tokens), static_cast<size_t>(gate.rows));
  const MemoryRange ups = memory_.place(op.scratch, gates.bytes / 4);
  activate({.gate = gates.begin,
            .up = ups.begin,
            .outputs = gates.begin,
            .join = {.columns = static_cast<uint32_t>(gate.rows),
                     .activation = static_cast<uint32_t>(op.activation),
                     .limit = op.limit},
            .rows = static_cast<uint32_t>(op.tokens),
            .up_stride = static_cast<uint32_t>(gate.rows)},
           {gates, ups}, gates, user_of(op.output));
}

// Whether the shared expert's gate and up can be in one dispatch with those of the experts.
bool Planner::joins_shared(const ExpertsUp& op) const {
  if (!op.has_shared || !(op.shared.input == op.input)) return false;
  const PlanMatrix &gate = memory_.matrix(op.shared.gate), &up = memory_.matrix(op.shared.up);
  const PlanMatrix *user = user_of(op.output), *shared_user = user_of(op.shared.output);
  const bool have_one_form =
      user == nullptr || shared_user == nullptr || user->input == shared_user->input;
  return !gate.is_empty() && have_one_format(gate, memory_.matrix(op.matrices->gate[0])) &&
         have_one_form && ends_activated(gate, up, shared_user);
}

void Planner::plan(const ExpertsUp& op) {
  const PlanMatrix& gate = memory_.matrix(op.matrices->gate[0]);
  const PlanMatrix& up = memory_.matrix(op.matrices->up[0]);
  const auto tokens = static_cast<size_t>(op.tokens);
  if (tokens == 0) return;
  const bool is_ended = !gate.is_empty() && ends_activated(gate, up, user_of(op.output));
  const bool joins = is_ended && joins_shared(op);
  if (op.has_shared && !joins) plan(op.shared);
  if (gate.is_empty()) return;  // a rank without a share of the experts
  ExpertsEnd to;
  if (is_ended) {
    const size_t items = tokens * static_cast<size_t>(op.chosen_count);
    to.experts = ended_rows(op.output, items, static_cast<size_t>(gate.rows));
  }
  if (joins) {
    const PlanMatrix& shared = memory_.matrix(op.shared.gate);
    to.shared = ended_rows(op.shared.output, tokens, static_cast<size_t>(shared.rows));
  }
  const size_t round = round_of(tokens, gate.prepared_words() + up.prepared_words());
  for (size_t begin = 0; begin < tokens; begin += round) {
    const size_t count = std::min(round, tokens - begin);
    if (is_ended) {
      plan_ended_experts(op, to, begin, count);
    } else {
      plan_experts_apart(op, begin, count);
    }
  }
  keep(to.experts.prepared);
  keep(to.shared.prepared);
}

void Planner::plan_ended_experts(const ExpertsUp& op, const ExpertsEnd& to, size_t begin,
                                 size_t count) {
  const PlanMatrix& gate = memory_.matrix(op.matrices->gate[0]);
  const auto chosen_count = static_cast<size_t>(op.chosen_count);
  const size_t first = begin * chosen_count, items = count * chosen_count;
  const MemoryRange chosen = rows_at(op.chosen, first, items, 1);
  const MemoryRange weights = rows_at(op.weights, first, items, 1);
  const auto [gate_bias, up_bias] = expert_biases(op);
  size_t scratch_used = 0;
  const Prepared input =
      prepare(gate, {op.input, begin, count, static_cast<size_t>(gate.columns)}, scratch_used);
  MatmulParams params{.chosen = chosen.begin,
                      .items = static_cast<uint32_t>(items),
                      .slots = static_cast<uint32_t>(chosen_count)};
  uint32_t blocks = blocks_of_result(gate);
  put_pair(
      {memory_.table(op.matrices->gate), memory_.table(op.matrices->up), input.x, input.stride},
      blocks, params.products);
  params.ends[0] = to.experts.end(first, op.activation, op.limit);
  params.ends[0].join.gate_bias = gate_bias.begin;
  params.ends[0].join.up_bias = up_bias.begin;
  params.ends[0].join.weights = weights.begin;
  size_t bytes = 2 * items * gate.bytes;
  const bool joins = to.shared.columns > 0;
  if (joins) {
    const PlanMatrix& shared = memory_.matrix(op.shared.gate);
    blocks += blocks_of_result(shared);
    bytes += 2 * shared.bytes;
    put_pair({shared.info, memory_.matrix(op.shared.up).info, input.x, input.stride}, blocks,
             params.products + 2);
    params.ends[1] = to.shared.end(begin, op.shared.activation, op.shared.limit);
  }
  const std::array matrices{&gate};
  const uint32_t form = std::max(to.experts.prepared.form, to.shared.prepared.form);
  emit_matmul(matmul_variant(matrices, joins ? kExpertsAndShared : kOneExpert, items,
                             {kEndsActivated, form}),
              params, blocks, bytes, {input.range, chosen, weights, gate_bias, up_bias},
              {to.experts.outputs(first, items), to.experts.blocks(first, items),
               to.shared.outputs(begin, count), to.shared.blocks(begin, count)});
}

}  // namespace lockstep::gpu
