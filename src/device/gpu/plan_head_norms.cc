// The plan of norms over heads that several ranks have together.
#include "device/gpu/emit.h"
#include "device/gpu/plan.h"

namespace lockstep::gpu {

void Planner::plan(const HeadSquares& op) {
  if (op.tokens == 0 || op.heads == 0) return;
  const auto tokens = static_cast<size_t>(op.tokens), heads = static_cast<size_t>(op.heads);
  const size_t x_end =
      (tokens - 1) * static_cast<size_t>(op.x_stride) + heads * static_cast<size_t>(op.head_dim);
  const size_t output_end = (tokens - 1) * static_cast<size_t>(op.output_stride) + heads;
  const MemoryRange x = memory_.place(op.x, x_end), output = memory_.place(op.output, output_end);
  emit({Kernel::kHeadSquares, {}}, heads, tokens,
       HeadSquaresParams{.x = x.begin,
                         .outputs = output.begin,
                         .x_stride = static_cast<uint32_t>(op.x_stride),
                         .output_stride = static_cast<uint32_t>(op.output_stride),
                         .head_dim = static_cast<uint32_t>(op.head_dim)},
       {x}, {output});
}

void Planner::plan(const NormHeads& op) {
  if (op.tokens == 0 || op.heads == 0) return;
  const auto tokens = static_cast<size_t>(op.tokens);
  const size_t columns = static_cast<size_t>(op.heads) * static_cast<size_t>(op.head_dim);
  const size_t squares_end =
      (tokens - 1) * static_cast<size_t>(op.squares_stride) + static_cast<size_t>(op.all_heads);
  const MemoryRange x = memory_.place(op.x, tokens * columns);
  const MemoryRange weight = memory_.place(op.weight, columns);
  const MemoryRange squares = memory_.place(op.squares, squares_end);
  emit({Kernel::kNormHeads, {}}, groups_of(columns, kGroupSize), tokens,
       NormHeadsParams{.x = x.begin,
                       .weight = weight.begin,
                       .squares = squares.begin,
                       .columns = static_cast<uint32_t>(columns),
                       .head_dim = static_cast<uint32_t>(op.head_dim),
                       .squares_stride = static_cast<uint32_t>(op.squares_stride),
                       .all_heads = static_cast<uint32_t>(op.all_heads),
                       .epsilon = op.epsilon},
       {x, weight, squares}, {x});
}

}  // namespace lockstep::gpu
