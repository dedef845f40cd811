// The plan of the operations of several residual streams.
#include "base/check.h"
#include "device/gpu/emit.h"
#include "device/gpu/plan.h"

namespace lockstep::gpu {
namespace {

void check_streams(int streams) {
  LOCKSTEP_CHECK(streams > 0 && streams <= kResidualStreamsMax);
}

}  // namespace

void Planner::plan(const StreamGates& op) {
  check_streams(op.streams);
  if (op.tokens == 0) return;
  const auto tokens = static_cast<size_t>(op.tokens);
  const bool has_all = op.rounds > 0;
  const size_t gates = has_all ? gates_of(op.streams) : static_cast<size_t>(op.streams);
  const MemoryRange x = memory_.place(op.x, tokens * gates);
  const MemoryRange scale = memory_.place(op.scale, has_all ? 3 : 1);
  const MemoryRange bias = memory_.place(op.bias, gates);
  emit({Kernel::kStreamGates, {}}, tokens, 1,
       StreamGatesParams{.x = x.begin,
                         .scale = scale.begin,
                         .bias = bias.begin,
                         .streams = static_cast<uint32_t>(op.streams),
                         .rounds = static_cast<uint32_t>(op.rounds),
                         .epsilon = op.epsilon},
       {x, scale, bias}, {x});
}

void Planner::plan(const CollapseStreams& op) {
  if (op.tokens == 0 || op.columns == 0) return;
  const auto tokens = static_cast<size_t>(op.tokens), columns = static_cast<size_t>(op.columns);
  const auto streams = static_cast<size_t>(op.streams);
  const auto stride = static_cast<size_t>(op.weights_stride);
  const MemoryRange input = memory_.place(op.input, tokens * streams * columns);
  const MemoryRange weights = memory_.place(op.weights, (tokens - 1) * stride + streams);
  const MemoryRange output = memory_.place(op.output, tokens * columns);
  emit({Kernel::kStreams, {0, 0, kCollapse}}, groups_of(columns, kGroupSize), tokens,
       StreamsParams{.x = output.begin,
                     .streams = input.begin,
                     .weights = weights.begin,
                     .weights_stride = static_cast<uint32_t>(stride),
                     .count = static_cast<uint32_t>(streams),
                     .columns = static_cast<uint32_t>(columns)},
       {input, weights}, {output});
}

void Planner::plan(const UpdateStreams& op) {
  check_streams(op.streams);
  if (op.tokens == 0 || op.columns == 0) return;
  const auto tokens = static_cast<size_t>(op.tokens), columns = static_cast<size_t>(op.columns);
  const auto streams = static_cast<size_t>(op.streams);
  const size_t gates = gates_of(op.streams);
  const MemoryRange x = memory_.place(op.x, tokens * columns);
  const MemoryRange all = memory_.place(op.gates, tokens * gates);
  const MemoryRange output = memory_.place(op.output, tokens * streams * columns);
  emit({Kernel::kStreams, {0, 0, kUpdate}}, groups_of(columns, kGroupSize), tokens,
       StreamsParams{.x = x.begin,
                     .streams = output.begin,
                     .weights = all.begin + streams * Slice::kElementBytes,
                     .weights_stride = static_cast<uint32_t>(gates),
                     .count = static_cast<uint32_t>(streams),
                     .columns = static_cast<uint32_t>(columns)},
       {x, all, output}, {output});
}

void Planner::plan(const InjectStreams& op) {
  check_streams(op.streams);
  if (op.tokens == 0 || op.columns == 0) return;
  const auto tokens = static_cast<size_t>(op.tokens), columns = static_cast<size_t>(op.columns);
  const auto streams = static_cast<size_t>(op.streams);
  const MemoryRange x = memory_.place(op.x, tokens * columns);
  const MemoryRange gates = memory_.place(op.gates, tokens * streams);
  const MemoryRange output = memory_.place(op.output, tokens * streams * columns);
  emit({Kernel::kStreams, {0, 0, kInject}}, groups_of(columns, kGroupSize), tokens,
       StreamsParams{.x = x.begin,
                     .streams = output.begin,
                     .weights = gates.begin,
                     .weights_stride = static_cast<uint32_t>(streams),
                     .count = static_cast<uint32_t>(streams),
                     .columns = static_cast<uint32_t>(columns)},
       {x, gates, output}, {output});
}

void Planner::plan(const MatchStreams& op) {
  LOCKSTEP_CHECK(op.streams > 0 && op.columns > 0);
  if (op.tokens == 0) return;
  const auto tokens = static_cast<size_t>(op.tokens), columns = static_cast<size_t>(op.columns);
  const size_t rows = tokens * static_cast<size_t>(op.streams);
  const MemoryRange keys = memory_.place(op.keys, rows * columns);
  const MemoryRange queries = memory_.place(op.queries, rows * columns);
  const MemoryRange values = memory_.place(op.values, tokens * columns);
  const MemoryRange output = memory_.place(op.output, rows * columns);
  emit({Kernel::kMatchStreams, {}}, rows, 1,
       MatchStreamsParams{.keys = keys.begin,
                          .queries = queries.begin,
                          .values = values.begin,
                          .outputs = output.begin,
                          .streams = static_cast<uint32_t>(op.streams),
                          .columns = static_cast<uint32_t>(columns)},
       {keys, queries, values}, {output});
}

}  // namespace lockstep::gpu
