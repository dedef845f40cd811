// Several residual streams with random shapes, for gpu_operations.h.
#pragma once

#include <vector>

#include "device/gpu_compare.h"

namespace lockstep::testing {

// The gates of tokens, the sums of their streams by gates of their own and by common ones, and what
// becomes of the streams.
inline std::vector<Output> residual_streams(Device& device, Random& random) {
  const int tokens = between(random, 1, 6), streams = between(random, 1, kResidualStreamsMax);
  const int columns = between(random, 1, 300), gates = streams * (2 + streams);
  const auto count = [&](int width) { return static_cast<size_t>(tokens * width); };
  const auto width = static_cast<size_t>(gates);
  std::vector<float> numbers_of_gates = numbers(random, count(gates));
  for (float& x : numbers_of_gates) x *= 5.0f;
  const Slice x = put(device, numbers_of_gates, Access::kHost);
  device.queue(StreamGates{.x = x,
                           .scale = put_numbers(device, random, 3),
                           .bias = put_numbers(device, random, width),
                           .tokens = tokens,
                           .streams = streams,
                           .rounds = between(random, 1, 20),
                           .epsilon = random() % 2 == 0 ? 1e-6f : 1e-3f});
  const Slice all = put_numbers(device, random, count(streams * columns), Access::kHost);
  const Slice output = room(device, count(columns), Access::kHost);
  CollapseStreams collapse{.input = all,
                           .weights = x,
                           .weights_stride = gates,
                           .tokens = tokens,
                           .streams = streams,
                           .columns = columns,
                           .output = output};
  device.queue(collapse);
  device.queue(UpdateStreams{.x = output,
                             .gates = x,
                             .tokens = tokens,
                             .streams = streams,
                             .columns = columns,
                             .output = all});
  const Slice mean = room(device, count(columns), Access::kHost);
  collapse.weights = put_numbers(device, random, static_cast<size_t>(streams));
  collapse.weights_stride = 0;
  collapse.output = mean;
  device.queue(collapse);
  return {{x, count(gates)},
          {output, count(columns)},
          {all, count(streams * columns)},
          {mean, count(columns)}};
}

// Gates that only open the streams to their sum.
inline std::vector<Output> gates_of_one_sum(Device& device, Random& random) {
  const int tokens = between(random, 1, 6), streams = between(random, 1, kResidualStreamsMax);
  const auto count = static_cast<size_t>(tokens * streams);
  const Slice x = put_numbers(device, random, count, Access::kHost);
  device.queue(StreamGates{.x = x,
                           .scale = put_numbers(device, random, 1),
                           .bias = put_numbers(device, random, static_cast<size_t>(streams)),
                           .tokens = tokens,
                           .streams = streams,
                           .rounds = 0,
                           .epsilon = 1e-6f});
  return {{x, count}};
}

}  // namespace lockstep::testing
