// The plan of layers that keep a state instead of keys and values.
#include "base/check.h"
#include "device/gpu/emit.h"
#include "device/gpu/plan.h"

namespace lockstep::gpu {

Planner::StateRanges Planner::ranges_of(const StateSlots& states, int tokens) const {
  const auto count = static_cast<size_t>(tokens);
  MemoryRange memory = memory_.whole(states.memory);
  memory.is_partial = true;
  return {memory, memory_.place(states.from, count), memory_.place(states.to, count)};
}

StatesInfo Planner::states_info(const StateSlots& states, const StateRanges& ranges, size_t offset,
                                int tokens) {
  return {.memory = ranges.memory.begin + offset * Slice::kElementBytes,
          .from = ranges.from.begin,
          .to = ranges.to.begin,
          .state_bytes = static_cast<uint32_t>(states.stride * Slice::kElementBytes),
          .tokens = static_cast<uint32_t>(tokens)};
}

void Planner::plan(const Convolve& op) {
  LOCKSTEP_CHECK(op.taps > 0 && op.dilation > 0);
  if (op.tokens == 0) return;
  const auto tokens = static_cast<size_t>(op.tokens), taps = static_cast<size_t>(op.taps);
  const StateRanges states = ranges_of(op.states, op.tokens);
  for (const Convolve::Part& part : op.parts) {
    if (part.channels == 0) continue;
    const auto channels = static_cast<size_t>(part.channels);
    const MemoryRange x = memory_.place(part.x, tokens * channels);
    const MemoryRange weights = memory_.place(part.weights, taps * channels);
    const MemoryRange y = memory_.place(part.y, tokens * channels);
    emit({Kernel::kConvolve, {}}, groups_of(channels, kGroupSize), 1,
         ConvolveParams{.states = states_info(op.states, states, part.state_offset, op.tokens),
                        .x = x.begin,
                        .weights = weights.begin,
                        .y = y.begin,
                        .channels = static_cast<uint32_t>(channels),
                        .taps = static_cast<uint32_t>(taps),
                        .dilation = static_cast<uint32_t>(op.dilation)},
         {states.from, states.to, x, weights, states.memory}, {y, states.memory});
  }
}

void Planner::plan(const Decay& op) {
  const auto tokens = static_cast<size_t>(op.tokens), columns = static_cast<size_t>(op.columns);
  const MemoryRange x = memory_.place(op.x, tokens * columns);
  const MemoryRange bias = memory_.place(op.bias, columns);
  const MemoryRange rate = memory_.place(op.rate, columns);
  elementwise(op.least == 0 ? kDecay : kBoundedDecay,
              {.x = bias.begin,
               .y = x.begin,
               .weights = rate.begin,
               .row_count = static_cast<uint32_t>(op.tokens),
               .columns = static_cast<uint32_t>(op.columns),
               .cap = op.least},
              {x, bias, rate}, {x});
}

void Planner::plan(const Sigmoid& op) {
  plan_numbers(kSigmoid, op.x, op.count);
}

void Planner::plan(const Silu& op) {
  plan_numbers(kSilu, op.x, op.count);
}

void Planner::plan_numbers(uint32_t kind, Slice numbers, size_t all) {
  in_rows(all, [&](size_t begin, size_t count) {
    const MemoryRange x = memory_.place({numbers.buffer, numbers.offset + begin}, count);
    elementwise(kind, {.y = x.begin, .row_count = 1, .columns = static_cast<uint32_t>(count)}, {x},
                {x});
  });
}

void Planner::plan(const DeltaRule& op) {
  if (op.tokens == 0 || op.value_heads == 0) return;
  const auto tokens = static_cast<size_t>(op.tokens), heads = static_cast<size_t>(op.value_heads);
  const size_t of_keys =
      tokens * static_cast<size_t>(op.key_heads) * static_cast<size_t>(op.key_dim);
  const size_t of_values = tokens * heads * static_cast<size_t>(op.value_dim);
  const MemoryRange query = memory_.place(op.query, of_keys), key = memory_.place(op.key, of_keys);
  const MemoryRange value = memory_.place(op.value, of_values);
  const MemoryRange decay =
      memory_.place(op.decay, tokens * heads * static_cast<size_t>(op.decays));
  const MemoryRange rate = memory_.place(op.rate, tokens * heads);
  const MemoryRange output = memory_.place(op.output, of_values);
  const StateRanges states = ranges_of(op.states, op.tokens);
  emit({Kernel::kDelta, {}}, groups_of(static_cast<size_t>(op.value_dim), kGroupSize), heads,
       DeltaParams{.states = states_info(op.states, states, op.state_offset, op.tokens),
                   .query = query.begin,
                   .key = key.begin,
                   .value = value.begin,
                   .decay = decay.begin,
                   .rate = rate.begin,
                   .outputs = output.begin,
                   .key_heads = static_cast<uint32_t>(op.key_heads),
                   .value_heads = static_cast<uint32_t>(op.value_heads),
                   .key_dim = static_cast<uint32_t>(op.key_dim),
                   .value_dim = static_cast<uint32_t>(op.value_dim),
                   .decays = static_cast<uint32_t>(op.decays)},
       {query, key, value, decay, rate, states.from, states.to, states.memory},
       {output, states.memory});
}

}  // namespace lockstep::gpu
