// The plan of products: an operation's input is prepared once for each form that its matrices need,
// and it is one dispatch for all of its matrices.
#include <algorithm>

#include "base/check.h"
#include "device/gpu/emit.h"
#include "device/gpu/plan.h"

namespace lockstep::gpu {
namespace {

// Fewer items than this share the terms of a row among invocations.
constexpr size_t kItemsAloneLeast = kItemsOfGroup;

}  // namespace

PlanMatrix plan_matrix(const PackedMatrix& packed, const ColumnLayout& layout, Address info,
                       size_t bytes) {
  const uint32_t input = is_by_column(packed.codes) ? kPlainInput
                         : packed.has_integer_input ? kIntegerInput
                                                    : kFloatInput;
  return {.info = info,
          .codes = packed.codes,
          .scales = packed.scales,
          .input = input,
          .rows = packed.rows,
          .columns = packed.columns,
          .blocks = packed.block_count,
          .subtrees = static_cast<int>(layout.subtrees),
          .layout = layout.number,
          .bytes = bytes};
}

size_t PlanMatrix::prepared_words() const {
  if (input == kPlainInput) return 0;
  return static_cast<size_t>(blocks) * (input == kIntegerInput ? kWordsOfBlock8 : kWordsOfBlockF);
}

uint32_t Planner::codes_of(const PlanMatrix& m) const {
  return options_.specialises ? static_cast<uint32_t>(m.codes) : kAnyFormat;
}
uint32_t Planner::scales_of(const PlanMatrix& m) const {
  return options_.specialises ? static_cast<uint32_t>(m.scales) : kAnyFormat;
}

size_t Planner::round_of(size_t tokens, size_t words) const {
  uint64_t most = kTokensOfRound;
  if (words > 0) most = std::min(most, own_scratch().bytes / 4 / words);
  LOCKSTEP_CHECK(most > 0);
  return std::min<uint64_t>(tokens, most);
}

// Matrices of one variant have one format, or its kernel reads that from each.
KernelVariant Planner::matmul_variant(std::span<const PlanMatrix* const> matrices, uint32_t parts,
                                      size_t items, const Ending& ending) const {
  const PlanMatrix& first = *matrices.front();
  const bool is_one = std::all_of(matrices.begin(), matrices.end(), [&](const PlanMatrix* m) {
    return m->codes == first.codes && m->scales == first.scales && m->input == first.input;
  });
  const bool specialises = is_one && options_.specialises;
  KernelVariant variant{
      Kernel::kMatmul,
      {specialises ? codes_of(first) : kAnyFormat, specialises ? scales_of(first) : kAnyFormat,
       parts, items < kItemsAloneLeast ? 1u : 0u, specialises ? first.input : kAnyFormat}};
  return ending.end == kEndsStored ? variant : ended(variant, ending);
}

size_t Planner::groups_of_items(const KernelVariant& variant, const MatmulParams& params) {
  const bool shares_terms = variant.constants[3] == 1;
  return shares_terms ? params.items : groups_of(params.items, kItemsOfGroup);
}

void Planner::emit_matmul(const KernelVariant& variant, MatmulParams& params, size_t tiles,
                          size_t weight_bytes, std::initializer_list<MemoryRange> reads,
                          std::initializer_list<MemoryRange> writes) {
  emit(variant, tiles, groups_of_items(variant, params), params, reads, writes);
  dispatches_.back().bytes += weight_bytes;
}

void Planner::plan(const Matmul& op) {
  size_t words = 0;
  bool has_any = false;
  for (int i = 0; i < op.count; ++i) {
    const PlanMatrix& m = memory_.matrix(op.products[i].matrix);
    words += m.prepared_words();  // at most, as matrices may share it
    has_any |= !m.is_empty();
  }
  const auto tokens = static_cast<size_t>(op.tokens);
  if (!has_any || tokens == 0) return;
  const size_t round = round_of(tokens, words);
  for (size_t begin = 0; begin < tokens; begin += round) {
    plan_products(op, begin, std::min(round, tokens - begin));
  }
}

// The products of some tokens.
void Planner::plan_products(const Matmul& op, size_t begin, size_t count) {
  const auto tokens = static_cast<size_t>(op.tokens);
  MatmulParams params{.items = static_cast<uint32_t>(count), .slots = 1};
  std::array<const PlanMatrix*, Matmul::kProductsMax> used{};
  std::array<MemoryRange, Matmul::kProductsMax> inputs{}, outputs{};
  size_t scratch_used = 0, tiles = 0, products = 0, weight_bytes = 0;
  for (int i = 0; i < op.count; ++i) {
    const PlanMatrix& m = memory_.matrix(op.products[i].matrix);
    if (m.is_empty()) continue;  // a rank without a share of this matrix
    const auto rows = static_cast<size_t>(m.rows), columns = static_cast<size_t>(m.columns);
    Prepared input;
    size_t same = 0;
    while (same < products && !used[same]->shares_input_with(m)) ++same;
    if (same < products) {
      input = {params.products[same].x, params.products[same].x_stride, inputs[same]};
    } else {
      input = prepare(m, {op.input, begin, count, columns}, scratch_used);
    }
    const MemoryRange all =
        memory_.place(op.products[i].output, static_cast<size_t>(m.subtrees) * tokens * rows);
    tiles += m.tiles();
    weight_bytes += m.bytes;
    params.products[products] = {.matrix = m.info,
                                 .x = input.x,
                                 .outputs = all.begin + begin * rows * 4,
                                 .x_stride = input.stride,
                                 .tile_end = static_cast<uint32_t>(tiles),
                                 .item_stride = static_cast<uint32_t>(rows),
                                 .subtree_stride = static_cast<uint32_t>(tokens * rows)};
    used[products] = &m;
    inputs[products] = input.range;
    outputs[products++] = all;
  }
  emit_matmul(matmul_variant({used.data(), products}, kOneMatrix, count), params, tiles,
              weight_bytes, {inputs[0], inputs[1], inputs[2]},
              {outputs[0], outputs[1], outputs[2]});
}

void Planner::plan(const Activate& op) {
  if (op.tokens == 0 || op.columns == 0) return;
  const auto tokens = static_cast<size_t>(op.tokens), columns = static_cast<size_t>(op.columns);
  const auto stride = static_cast<size_t>(op.up_stride);
  LOCKSTEP_CHECK(!has_limit(op.activation) && columns <= stride);
  const MemoryRange gates = memory_.place(op.gate, tokens * columns);
  const MemoryRange ups = memory_.place(op.up, (tokens - 1) * stride + columns);
  activate({.gate = gates.begin,
            .up = ups.begin,
            .outputs = gates.begin,
            .join = {.columns = static_cast<uint32_t>(op.columns),
                     .activation = static_cast<uint32_t>(op.activation)},
            .rows = static_cast<uint32_t>(op.tokens),
            .up_stride = static_cast<uint32_t>(op.up_stride)},
           {gates, ups}, gates, user_of(op.gate));
}

// `user`: of all of the output's rows, or none.
void Planner::activate(ActivateParams params, std::initializer_list<MemoryRange> reads,
                       const MemoryRange& output, const PlanMatrix* user) {
  const uint32_t columns = params.join.columns;
  const PreparedRows prepared = room_for(user, output, params.rows, columns, columns);
  params.prepared = prepared.to;
  const size_t groups = prepared.form != kPlainInput
                            ? groups_of(static_cast<size_t>(user->blocks), kBlocksOfActivate)
                            : groups_of(columns, kGroupSize);
  emit({Kernel::kActivate, {0, 0, 0, prepared.form}}, groups, params.rows, params, reads,
       {output, prepared.prepared.range});
  keep(prepared);
}

void Planner::plan(const HeadMatmul& op) {
  plan_head_products(op, nullptr);
}

// Whether the result of each head is whole blocks of the rows that are multiplied next.
bool Planner::ends_prepared(const HeadMatmul& op, const PlanMatrix* user) const {
  const PlanMatrix& first = memory_.matrix(op.matrices->front());
  const int heads = static_cast<int>(op.matrices->size());
  return options_.ends_blocks && user != nullptr && first.subtrees == 1 &&
         first.rows % static_cast<int>(kColumnsOfBlock) == 0 && op.output_stride == first.rows &&
         user->columns == heads * first.rows && user->has_whole_blocks();
}

void Planner::plan_head_products(const HeadMatmul& op, const LatentWork* latent) {
  const size_t heads = op.matrices->size(), tokens = static_cast<size_t>(op.tokens);
  if (heads == 0 || tokens == 0) return;
  const PlanMatrix& first = memory_.matrix(op.matrices->front());
  LOCKSTEP_CHECK(first.columns <= op.input_stride && first.rows <= op.output_stride);
  const auto stride = static_cast<size_t>(op.output_stride);
  const size_t round = round_of(tokens, heads * first.prepared_words());
  const MemoryRange output = rows_at(op.output, 0, tokens * heads, stride);
  const PlanMatrix* user = user_of(op.output);
  EndedRows to{output, heads * stride, {}};
  if (latent == nullptr && ends_prepared(op, user)) {
    to.prepared = room_for(user, output, tokens, to.columns, to.columns);
  }
  const bool is_ended = to.prepared.form != kPlainInput;
  for (size_t begin = 0; begin < tokens; begin += round) {
    const size_t count = std::min(round, tokens - begin), items = count * heads;
    size_t scratch_used = 0;
    // Tokens and heads both count as rows.
    const Prepared input =
        prepare(first, {op.input, begin * heads, items, static_cast<size_t>(op.input_stride)},
                scratch_used);
    MatmulParams params{.items = static_cast<uint32_t>(items),
                        .slots = static_cast<uint32_t>(heads)};
    const size_t groups = is_ended ? static_cast<size_t>(first.rows) / kColumnsOfBlock
                                   : static_cast<size_t>(first.tiles());
    params.products[0] = {.matrix = memory_.table(*op.matrices),
                          .x = input.x,
                          .outputs = output.begin + begin * heads * stride * 4,
                          .x_stride = input.stride,
                          .tile_end = static_cast<uint32_t>(groups),
                          .item_stride = static_cast<uint32_t>(stride)};
    const MemoryRange blocks = to.blocks(begin, count);
    if (is_ended) {
      params.ends[0] = {.outputs = params.products[0].outputs,
                        .blocks = blocks.begin,
                        .join = {.columns = static_cast<uint32_t>(stride)}};
    }
    const std::array matrices{&first};
    const KernelVariant variant = matmul_variant(
        matrices, kOneHead, items, {is_ended ? kEndsPrepared : kEndsStored, to.prepared.form});
    const size_t bytes = heads * first.bytes;
    if (latent == nullptr) {
      emit_matmul(variant, params, groups, bytes, {input.range}, {output, blocks});
    } else {
      emit_absorb(variant, params, *latent, bytes, input.range, output);
    }
  }
  keep(to.prepared);
}

}  // namespace lockstep::gpu
