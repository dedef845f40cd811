// How the processor runs the experts of a layer: token by token, each expert's matrices cut into
// pieces for the team.
#include <algorithm>
#include <array>

#include "base/check.h"
#include "device/cpu_device.h"
#include "device/packing.h"
#include "device/router.h"

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
  if (first.rows == 0 || op.tokens == 0) return;  // a rank without a share of the experts
  const auto ffn = static_cast<size_t>(first.rows), columns = static_cast<size_t>(first.columns);
  const auto slots = static_cast<size_t>(op.tokens) * static_cast<size_t>(op.chosen_count);
  const int32_t* chosen = ints(op.chosen, slots);
  const float* weights = floats(op.weights, slots);
  const float* input = floats(op.input, static_cast<size_t>(op.tokens) * columns);
  float* ups = floats(op.scratch, slots * ffn);
  float* output = floats(op.output, slots * ffn);
  const int tiles = tile_count(first.rows), pieces = pieces_of(tiles);
  // Items: for each slot the pieces of its gate matrix, then those of its up matrix.
  const int items = static_cast<int>(slots) * pieces * 2;
  team_.for_each_chunk(items, 1, [&](int begin, int end) {
    for (int item = begin; item < end; ++item) {
      const auto slot = static_cast<size_t>(item / (2 * pieces));
      const int piece = item % pieces;
      const bool is_gate = item / pieces % 2 == 0;
      const auto expert = static_cast<size_t>(chosen[slot]);
      const Matrix& m = matrix(is_gate ? op.matrices->gate[expert] : op.matrices->up[expert]);
      MatmulArgs args = matmul_args(m);
      args.input = input + slot / static_cast<size_t>(op.chosen_count) * columns;
      args.output = (is_gate ? output : ups) + slot * ffn;
      args.tile_begin = piece * kTilesOfPiece;
      args.tile_end = std::min(tiles, args.tile_begin + kTilesOfPiece);
      multiply(m.dtype, args);
    }
  });
  team_.for_each_chunk(static_cast<int>(slots), 1, [&](int begin, int end) {
    for (auto slot = static_cast<size_t>(begin); slot < static_cast<size_t>(end); ++slot) {
      float* values = output + slot * ffn;
      kernels_.silu_mul(values, ups + slot * ffn, values, ffn);
      for (size_t i = 0; i < ffn; ++i) values[i] *= weights[slot];
    }
  });
}

void CpuDevice::run(const ExpertsDown& op) {
  const Matrix& first = matrix(op.matrices->down[0]);
  if (first.rows == 0 || first.steps.empty() || op.tokens == 0) return;
  const auto rows = static_cast<size_t>(first.rows), columns = static_cast<size_t>(first.columns);
  const auto tokens = static_cast<size_t>(op.tokens);
  const auto chosen_count = static_cast<size_t>(op.chosen_count);
  const int32_t* chosen = ints(op.chosen, tokens * chosen_count);
  const float* input = floats(op.input, tokens * chosen_count * columns);
  float* output = floats(op.output, first.subtrees * tokens * rows);
  LOCKSTEP_CHECK(op.chosen_count <= kMatmulPartsMax);
  const int tiles = tile_count(first.rows), pieces = pieces_of(tiles);
  team_.for_each_chunk(op.tokens * pieces, 1, [&](int begin, int end) {
    for (int item = begin; item < end; ++item) {
      const auto token = static_cast<size_t>(item / pieces);
      std::array<MatmulPart, kMatmulPartsMax> more;
      int32_t more_count = 0;
      const auto part_of = [&](const Matrix& m, const float* from) {
        return MatmulPart{m.packed, m.columns, m.steps.data(), from,
                          static_cast<size_t>(m.columns)};
      };
      const int32_t* experts = chosen + token * chosen_count;
      const float* from = input + token * chosen_count * columns;
      for (size_t i = 1; i < chosen_count; ++i) {
        const Matrix& m = matrix(op.matrices->down[static_cast<size_t>(experts[i])]);
        more[static_cast<size_t>(more_count++)] = part_of(m, from + i * columns);
      }
      if (op.has_shared) {
        const Matrix& m = matrix(op.shared);
        const auto width = static_cast<size_t>(m.columns);
        more[static_cast<size_t>(more_count++)] =
            part_of(m, floats(op.shared_input, tokens * width) + token * width);
      }
      const Matrix& m = matrix(op.matrices->down[static_cast<size_t>(experts[0])]);
      MatmulArgs args = matmul_args(m);
      args.input = from;
      args.output = output + token * rows;
      args.subtree_stride = tokens * rows;
      args.more = more.data();
      args.more_count = more_count;
      args.tile_begin = item % pieces * kTilesOfPiece;
      args.tile_end = std::min(tiles, args.tile_begin + kTilesOfPiece);
      multiply(m.dtype, args);
    }
  });
}

}  // namespace lockstep
