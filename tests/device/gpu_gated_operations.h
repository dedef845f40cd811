// The operations that join gates and ups, with random shapes and formats, for gpu_operations.h.
#pragma once

#include <vector>

#include "device/gpu_compare.h"

namespace lockstep::testing {

inline constexpr float kGateLimit = 1.5f;

inline Activation gate_without_limit(Random& random) {
  constexpr Activation kGates[] = {Activation::kSiluMul, Activation::kGeluMul,
                                   Activation::kSigmoidMul};
  return kGates[random() % 3];
}

inline Activation random_gate(Random& random) {
  return random() % 3 == 0 ? Activation::kClippedSiluMul : gate_without_limit(random);
}

inline std::vector<Output> gated_up(Device& device, Random& random) {
  const int tokens = between(random, 1, 20), columns = between(random, 1, 300);
  const Shape shape{between(random, 1, 60), columns, {{columns, 0, 1}}};
  const MatrixId gate = pack_random(device, random, any_format(random), shape);
  const MatrixId up = pack_random(device, random, any_format(random), shape);
  const auto count = static_cast<size_t>(tokens * shape.rows);
  const Slice output = room(device, count, Access::kHost);
  device.queue(GatedUp{.gate = gate,
                       .up = up,
                       .input = put_numbers(device, random, static_cast<size_t>(tokens * columns)),
                       .tokens = tokens,
                       .scratch = room(device, count),
                       .output = output,
                       .activation = random_gate(random),
                       .limit = kGateLimit});
  return {{output, count}};
}

inline std::vector<Output> activate(Device& device, Random& random) {
  const int tokens = between(random, 1, 20), columns = between(random, 1, 200);
  const int stride = columns + between(random, 0, 50);
  const auto count = static_cast<size_t>(tokens * columns);
  const Slice gate = put_numbers(device, random, count, Access::kHost);
  device.queue(Activate{.gate = gate,
                        .up = put_numbers(device, random, static_cast<size_t>(tokens * stride)),
                        .tokens = tokens,
                        .columns = columns,
                        .up_stride = stride,
                        .activation = gate_without_limit(random)});
  return {{gate, count}};
}

inline std::vector<Output> gated_ffn(Device& device, Random& random) {
  const int tokens = between(random, 1, 12), columns = between(random, 1, 300);
  const Shape up{between(random, 1, 700), columns, {{columns, 0, 1}}};
  const Shape down{between(random, 1, 50), up.rows, random_steps(random, up.rows)};
  const MatrixId gate = pack_random(device, random, any_format(random), up);
  const auto count = static_cast<size_t>(tokens * up.rows);
  const GatedUp op{.gate = gate,
                   .up = pack_random(device, random, any_format(random), up),
                   .input = put_numbers(device, random, static_cast<size_t>(tokens * columns)),
                   .tokens = tokens,
                   .scratch = room(device, count),
                   .output = room(device, count, Access::kHost),
                   .activation = random_gate(random),
                   .limit = kGateLimit};
  const MatrixId id = pack_random(device, random, any_format(random), down);
  const auto products = static_cast<size_t>(subtrees_of(down.steps) * tokens * down.rows);
  const Slice output = put(device, std::vector<float>(products), Access::kHost);
  device.queue(op);
  device.queue(Matmul{op.output, tokens, {{id, output}}});
  return {{op.output, count}, {output, products}};
}

}  // namespace lockstep::testing
