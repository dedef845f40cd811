// The plan of operations that are one dispatch each; products are in plan_products.cc, experts in
// plan_experts.cc.
#include "device/gpu/plan.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "device/gpu/emit.h"
#include "kernels/kernels.h"

namespace lockstep::gpu {
namespace {

static_assert(kTileRows == kLanes && kTilesOfGroup == kGroupTiles);
static_assert(kColumnsOfBlock == kBlockColumns && kColumnsOfRun == kPlainRunColumns);
static_assert(kPositionsOfPage == kPagePositions && kLanesOfNorm == kNormLanes);
static_assert(kActivateSilu == static_cast<uint32_t>(Activation::kSiluMul) &&
              kActivateClamped == static_cast<uint32_t>(Activation::kClampedSwiglu) &&
              kActivateGelu == static_cast<uint32_t>(Activation::kGeluMul) &&
              kActivateSigmoid == static_cast<uint32_t>(Activation::kSigmoidMul) &&
              kActivateClipped == static_cast<uint32_t>(Activation::kClippedSiluMul));
static_assert(kScoresSoftmax == static_cast<uint32_t>(RouterForm::kSoftmax) &&
              kScoresSigmoid == static_cast<uint32_t>(RouterForm::kSigmoid) &&
              kScoresRootSoftplus == static_cast<uint32_t>(RouterForm::kRootSoftplus));
static_assert(kMostStreams == kResidualStreamsMax && kMostStreams * kMostStreams <= kGroupSize);
static_assert(kSlopeOfGelu == kGeluSlope && kSquareOfGelu == kGeluSquare);
static_assert(kWordsOfBlock8 * 4 == sizeof(InputBlock8));
static_assert(kWordsOfBlockF * 4 == sizeof(InputBlockF));

}  // namespace

std::string_view kernel_name(Kernel kernel) {
  switch (kernel) {
    case Kernel::kEmbed:
      return "embed";
    case Kernel::kPrepare:
      return "prepare";
    case Kernel::kMatmul:
      return "matmul";
    case Kernel::kMatmulEnded:
      return "matmul_ended";
    case Kernel::kNorm:
      return "norm";
    case Kernel::kHeadSquares:
      return "head_squares";
    case Kernel::kNormHeads:
      return "norm_heads";
    case Kernel::kRope:
      return "rope";
    case Kernel::kRotate:
      return "rotate";
    case Kernel::kStoreKv:
      return "store_kv";
    case Kernel::kAttention:
      return "attention";
    case Kernel::kAttentionMerge:
      return "attention_merge";
    case Kernel::kActivate:
      return "activate";
    case Kernel::kRoute:
      return "route";
    case Kernel::kElementwise:
      return "elementwise";
    case Kernel::kHeads:
      return "heads";
    case Kernel::kLatent:
      return "latent";
    case Kernel::kAbsorb:
      return "absorb";
    case Kernel::kProbe:
      return "probe";
    case Kernel::kConvolve:
      return "convolve";
    case Kernel::kDelta:
      return "delta";
    case Kernel::kLayerNorm:
      return "layer_norm";
    case Kernel::kIndexScores:
      return "index_scores";
    case Kernel::kChoosePositions:
      return "choose_positions";
    case Kernel::kAttentionChosen:
      return "attention_chosen";
    case Kernel::kPoolKey:
      return "pool_key";
    case Kernel::kStreamGates:
      return "stream_gates";
    case Kernel::kStreams:
      return "streams";
    case Kernel::kCompress:
      return "compress";
    case Kernel::kAttentionCompressed:
      return "attention_compressed";
    case Kernel::kMatchStreams:
      return "match_streams";
  }
  return "";
}

void Planner::plan_waiting() {
  for (std::span<const Operation> rest = waiting_; !rest.empty();) {
    after_ = rest.subspan(1);
    size_t planned = plan_heads(rest);
    if (planned == 0) planned = plan_absorb(rest);
    if (planned == 0) planned = plan_latent(rest);
    if (planned == 0) planned = plan_biased_norm(rest);
    if (planned == 0) planned = plan_biased_route(rest);
    if (planned == 0) {
      std::visit([this](const auto& op) { plan(op); }, rest.front());
      planned = 1;
    }
    rest = rest.subspan(planned);
  }
  after_ = {};
  waiting_.clear();
}

std::span<const Dispatch> Planner::finish() {
  plan_waiting();
  return dispatches_;
}

void Planner::clear() {
  waiting_.clear();
  dispatches_.clear();
  turns_.clear();
  prepared_.clear();
  hazards_.wait_for_all();
}

MemoryRange Planner::rows_at(Slice slice, size_t first, size_t rows, size_t stride) const {
  return memory_.place({slice.buffer, slice.offset + first * stride}, rows * stride);
}

// The host may write whatever it can see.
void Planner::plan(const HostTurn& turn) {
  turns_.push_back({dispatches_.size(), turn.number});
  hazards_.wait_for_all();
  prepared_.clear();
}

void Planner::plan(const Embed& op) {
  const PlanMatrix& m = memory_.matrix(op.matrices().front());
  if (m.is_empty() || op.tokens == 0) return;
  const auto tokens = static_cast<size_t>(op.tokens), columns = static_cast<size_t>(m.columns);
  const size_t stride = stride_or(op.output_stride, columns);
  LOCKSTEP_CHECK(columns <= stride);
  const MemoryRange rows = memory_.place(op.rows, tokens);
  const MemoryRange output = memory_.place(op.output, (tokens - 1) * stride + columns);
  size_t blocks = 0;  // at most
  bool is_one = true;
  for (const MatrixId id : op.matrices()) {
    const PlanMatrix& part = memory_.matrix(id);
    blocks = std::max(blocks, is_by_column(part.codes) ? groups_of(columns, kColumnsOfBlock)
                                                       : static_cast<size_t>(part.blocks));
    is_one &= part.codes == m.codes && part.scales == m.scales;
  }
  const KernelVariant variant{
      Kernel::kEmbed, {is_one ? codes_of(m) : kAnyFormat, is_one ? scales_of(m) : kAnyFormat}};
  emit(variant, groups_of(blocks, kGroupSize), tokens,
       EmbedParams{.matrix = m.info,
                   .parts = op.parts ? memory_.table(*op.parts) : Address{},
                   .rows = rows.begin,
                   .outputs = output.begin,
                   .stride = static_cast<uint32_t>(stride)},
       {rows}, {output});
}

void Planner::elementwise(uint32_t kind, const ElementwiseParams& params,
                          std::initializer_list<MemoryRange> reads,
                          std::initializer_list<MemoryRange> writes) {
  if (params.row_count == 0 || params.columns == 0) return;
  emit({Kernel::kElementwise, {0, 0, kind}}, groups_of(params.columns, kGroupSize),
       params.row_count, params, reads, writes);
}

void Planner::plan(const CopyRows& op) {
  const auto count = static_cast<size_t>(op.count), columns = static_cast<size_t>(op.columns);
  const MemoryRange rows = memory_.place(op.rows, count);
  MemoryRange input = memory_.whole(op.input);
  input.is_partial = true;
  const MemoryRange output = memory_.place(op.output, count * columns);
  elementwise(kCopyRows,
              {.x = input.begin,
               .y = output.begin,
               .rows = rows.begin,
               .row_count = static_cast<uint32_t>(count),
               .columns = static_cast<uint32_t>(columns),
               .x_stride = static_cast<uint32_t>(stride_or(op.input_stride, columns))},
              {rows, input}, {output});
}

void Planner::plan(const CopyColumns& op) {
  if (op.count == 0 || op.columns == 0) return;
  const auto count = static_cast<size_t>(op.count), columns = static_cast<size_t>(op.columns);
  const auto stride = static_cast<size_t>(op.output_stride);
  const size_t from = stride_or(op.input_stride, columns);
  LOCKSTEP_CHECK(columns <= stride && columns <= from);
  const MemoryRange input = memory_.place(op.input, (count - 1) * from + columns);
  const MemoryRange output = memory_.place(op.output, (count - 1) * stride + columns);
  elementwise(kCopyColumns,
              {.x = input.begin,
               .y = output.begin,
               .row_count = static_cast<uint32_t>(count),
               .columns = static_cast<uint32_t>(columns),
               .y_stride = static_cast<uint32_t>(stride),
               .x_stride = static_cast<uint32_t>(from)},
              {input}, {output});
}

void Planner::plan(const Add& op) {
  in_rows(op.count, [&](size_t begin, size_t count) {
    const MemoryRange x = memory_.place({op.x.buffer, op.x.offset + begin}, count);
    const MemoryRange sum = memory_.place({op.sum.buffer, op.sum.offset + begin}, count);
    elementwise(
        kAdd,
        {.x = x.begin, .y = sum.begin, .row_count = 1, .columns = static_cast<uint32_t>(count)},
        {x, sum}, {sum});
  });
}

void Planner::plan(const Scale& op) {
  const MemoryRange factor = memory_.place(op.factor, 1);
  in_rows(op.count, [&](size_t begin, size_t count) {
    const MemoryRange y = memory_.place({op.x.buffer, op.x.offset + begin}, count);
    elementwise(
        kScale,
        {.x = factor.begin, .y = y.begin, .row_count = 1, .columns = static_cast<uint32_t>(count)},
        {factor, y}, {y});
  });
}

void Planner::plan(const Cap& op) {
  in_rows(op.count, [&](size_t begin, size_t count) {
    const MemoryRange y = memory_.place({op.x.buffer, op.x.offset + begin}, count);
    elementwise(
        kCap,
        {.y = y.begin, .row_count = 1, .columns = static_cast<uint32_t>(count), .cap = op.cap}, {y},
        {y});
  });
}

void Planner::plan(const AddBias& op) {
  plan_rows(kAddBias, op.x, memory_.place(op.bias, static_cast<size_t>(op.columns)), op.tokens,
            op.columns);
}

void Planner::plan(const ScaleRows& op) {
  plan_rows(kScaleRows, op.x, memory_.place(op.factors, static_cast<size_t>(op.tokens)), op.tokens,
            op.columns);
}

void Planner::plan_rows(uint32_t kind, Slice rows, const MemoryRange& with, int tokens,
                        int columns) {
  const MemoryRange y = rows_at(rows, 0, static_cast<size_t>(tokens), static_cast<size_t>(columns));
  elementwise(kind,
              {.x = with.begin,
               .y = y.begin,
               .row_count = static_cast<uint32_t>(tokens),
               .columns = static_cast<uint32_t>(columns)},
              {with, y}, {y});
}

void Planner::plan(const AddExpertBias& op) {
  const auto tokens = static_cast<size_t>(op.tokens), columns = static_cast<size_t>(op.columns);
  const size_t slots = tokens * static_cast<size_t>(op.chosen_count);
  const MemoryRange x = memory_.place(op.x, tokens * columns);
  MemoryRange bias = memory_.place(op.bias, static_cast<size_t>(op.experts) * columns);
  bias.is_partial = true;  // those of the chosen experts
  const MemoryRange chosen = memory_.place(op.chosen, slots),
                    weights = memory_.place(op.weights, slots);
  elementwise(kAddExpertBias,
              {.x = bias.begin,
               .y = x.begin,
               .rows = chosen.begin,
               .weights = weights.begin,
               .row_count = static_cast<uint32_t>(op.tokens),
               .columns = static_cast<uint32_t>(op.columns),
               .slots = static_cast<uint32_t>(op.chosen_count)},
              {bias, chosen, weights, x}, {x});
}

void Planner::plan(const RmsNorm& op) {
  if (op.tokens == 0) return;
  const auto tokens = static_cast<size_t>(op.tokens), columns = static_cast<size_t>(op.columns);
  const size_t stride = stride_or(op.stride, columns);
  const MemoryRange x = memory_.place(op.x, tokens * stride),
                    y = memory_.place(op.y, tokens * stride);
  LOCKSTEP_CHECK(op.weights > 0);
  const MemoryRange weight = memory_.place(op.weight, static_cast<size_t>(op.weights) * columns);
  plan_norm({.x = x.begin,
             .weight = weight.begin,
             .columns = static_cast<uint32_t>(columns),
             .stride = static_cast<uint32_t>(stride),
             .epsilon = op.epsilon},
            tokens, op.weights, {x, weight}, {}, op.y, y);
}

// `weights`: rows of the weight; `sum`: is written too, or none.
void Planner::plan_norm(NormParams params, size_t tokens, int weights,
                        std::initializer_list<MemoryRange> reads, const MemoryRange& sum,
                        Slice output, const MemoryRange& y) {
  const PreparedRows prepared = room_for(user_of(output), y, tokens, params.columns, params.stride);
  params.prepared = prepared.to;
  params.y = y.begin;
  emit({Kernel::kNorm,
        {0, 0, params.sum == 0 ? 0u : 1u, prepared.form,
         weights > 1 ? static_cast<uint32_t>(weights) : 0u}},
       tokens, 1, params, reads, {sum, y, prepared.prepared.range});
  keep(prepared);
}

void Planner::plan(const AddRmsNorm& op) {
  if (op.tokens > 0) plan_sum_norm(op, {});
}

void Planner::plan_sum_norm(const AddRmsNorm& op, const MemoryRange& bias) {
  const auto tokens = static_cast<size_t>(op.tokens), columns = static_cast<size_t>(op.columns);
  const MemoryRange x = memory_.place(op.x, tokens * columns);
  const MemoryRange sum = memory_.place(op.sum, tokens * columns);
  const MemoryRange y = memory_.place(op.y, tokens * columns);
  const MemoryRange weight = memory_.place(op.weight, columns);
  plan_norm({.x = x.begin,
             .sum = sum.begin,
             .bias = bias.begin,
             .weight = weight.begin,
             .columns = static_cast<uint32_t>(columns),
             .stride = static_cast<uint32_t>(columns),
             .epsilon = op.epsilon},
            tokens, 1, {x, sum, bias, weight}, sum, op.y, y);
}

void Planner::plan(const Rope& op) {
  if (op.tokens == 0 || op.heads == 0 || op.half == 0) return;
  const auto tokens = static_cast<size_t>(op.tokens), heads = static_cast<size_t>(op.heads);
  const auto half = static_cast<size_t>(op.half);
  const MemoryRange x = memory_.place(op.x, tokens * heads * static_cast<size_t>(op.head_dim));
  const MemoryRange table = memory_.place(op.table, tokens * 2 * half);
  emit({Kernel::kRope, {}}, groups_of(half, kGroupSize), tokens * heads,
       RopeParams{.x = x.begin,
                  .table = table.begin,
                  .heads = static_cast<uint32_t>(op.heads),
                  .head_dim = static_cast<uint32_t>(op.head_dim),
                  .half_dims = static_cast<uint32_t>(op.half)},
       {x, table}, {x});
}

void Planner::plan(const RotatePairs& op) {
  const auto rows = static_cast<size_t>(op.tokens) * static_cast<size_t>(op.heads);
  const auto half = static_cast<size_t>(op.dims / 2);
  if (rows == 0 || half == 0) return;
  const MemoryRange x = memory_.place(op.x, rows * static_cast<size_t>(op.x_stride));
  const MemoryRange y = memory_.place(op.y, rows * static_cast<size_t>(op.y_stride));
  const MemoryRange table = memory_.place(op.table, static_cast<size_t>(op.tokens) * 2 * half);
  emit({Kernel::kRotate, {}}, groups_of(half, kGroupSize), rows,
       RotateParams{.x = x.begin,
                    .y = y.begin,
                    .table = table.begin,
                    .heads = static_cast<uint32_t>(op.heads),
                    .x_stride = static_cast<uint32_t>(op.x_stride),
                    .x_offset = static_cast<uint32_t>(op.x_offset),
                    .y_stride = static_cast<uint32_t>(op.y_stride),
                    .y_offset = static_cast<uint32_t>(op.y_offset),
                    .half_dims = static_cast<uint32_t>(half)},
       {x, table}, {y});
}

PagesInfo Planner::pages_info(const LayerPages& pages) const {
  return {.keys = memory_.whole(pages.keys).begin,
          .values = memory_.whole(pages.values).begin,
          .page_bytes = static_cast<uint32_t>(pages.page_stride * Slice::kElementBytes),
          .head_bytes = static_cast<uint32_t>(page_head_stride(pages.kind, pages.head_dim)),
          .head_dim = static_cast<uint32_t>(pages.head_dim),
          .value_dim = static_cast<uint32_t>(pages.value_dim),
          .kv_heads = static_cast<uint32_t>(pages.kv_heads)};
}

MemoryRange Planner::state_of(const LayerPages& pages) const {
  MemoryRange state = memory_.whole(pages.keys);
  state.is_partial = true;
  return state;
}

void Planner::plan(const StoreKv& op) {
  const auto tokens = static_cast<size_t>(op.tokens);
  if (tokens == 0 || op.pages.kv_heads == 0) return;
  const MemoryRange keys = rows_at(op.keys, 0, tokens, static_cast<size_t>(op.keys_stride));
  const MemoryRange values = rows_at(op.values, 0, tokens, static_cast<size_t>(op.values_stride));
  const MemoryRange page = memory_.place(op.page, tokens), slot = memory_.place(op.slot, tokens);
  const size_t blocks = 2 * static_cast<size_t>(op.pages.kv_heads) *
                        static_cast<size_t>(kv_blocks(op.pages.head_dim));
  emit({Kernel::kStoreKv, {static_cast<uint32_t>(op.pages.kind)}}, groups_of(blocks, kGroupSize),
       tokens,
       StoreParams{.pages = pages_info(op.pages),
                   .keys = keys.begin,
                   .values = values.begin,
                   .page = page.begin,
                   .slot = slot.begin,
                   .keys_stride = static_cast<uint32_t>(op.keys_stride),
                   .values_stride = static_cast<uint32_t>(op.values_stride)},
       {keys, values, page, slot}, {state_of(op.pages)});
}

void Planner::plan(const Route& op) {
  plan_route(op, {});
}

void Planner::plan_route(const Route& op, const MemoryRange& score_bias) {
  if (op.tokens == 0) return;
  LOCKSTEP_CHECK(static_cast<uint32_t>(op.experts) <= kExpertsMax);
  const auto tokens = static_cast<size_t>(op.tokens), experts = static_cast<size_t>(op.experts);
  const size_t slots = tokens * static_cast<size_t>(op.chosen);
  const MemoryRange scores = memory_.place(op.scores, tokens * experts);
  const MemoryRange bias = op.has_bias() ? memory_.place(op.bias, experts) : MemoryRange{};
  const MemoryRange given = op.has_given ? memory_.place(op.given, slots) : MemoryRange{};
  const MemoryRange scales = op.has_scales ? memory_.place(op.scales, experts) : MemoryRange{};
  const MemoryRange chosen = memory_.place(op.output, slots),
                    weights = memory_.place(op.weights, slots);
  emit({Kernel::kRoute, {}}, tokens, 1,
       RouteParams{.scores = scores.begin,
                   .score_bias = score_bias.begin,
                   .bias = bias.begin,
                   .scales = scales.begin,
                   .given = given.begin,
                   .chosen = chosen.begin,
                   .weights = weights.begin,
                   .experts = static_cast<uint32_t>(op.experts),
                   .chosen_count = static_cast<uint32_t>(op.chosen),
                   .form = static_cast<uint32_t>(op.form),
                   .groups = static_cast<uint32_t>(op.groups),
                   .chosen_groups = static_cast<uint32_t>(op.chosen_groups),
                   .normalises = op.normalises ? 1u : 0u,
                   .factor = op.factor},
       {scores, bias, score_bias, scales, given}, {chosen, weights});
}

}  // namespace lockstep::gpu
