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

// Streams are normed with a weight each and match queries, whose values become parts of others.
inline std::vector<Output> matched_streams(Device& device, Random& random) {
  const int tokens = between(random, 1, 6), streams = between(random, 1, kResidualStreamsMax);
  const int columns = between(random, 1, 400);
  const auto count = [&](int width) { return static_cast<size_t>(tokens * width); };
  const size_t all = count(streams * columns);
  const Slice keys = put_numbers(device, random, all, Access::kHost);
  const Slice weight = put_numbers(device, random, static_cast<size_t>(streams * columns));
  device.queue(RmsNorm{.x = keys,
                       .weight = weight,
                       .tokens = tokens * streams,
                       .columns = columns,
                       .epsilon = 1e-6f,
                       .y = keys,
                       .weights = streams});
  std::vector<float> queries = numbers(random, all);
  for (float& x : queries) {
    if (random() % 16 == 0) x *= random() % 2 == 0 ? 0.0f : 1e-9f;
  }
  const bool is_small = random() % 4 == 0;
  for (float& x : queries) x *= is_small ? 1e-7f : 1.0f;
  MatchStreams match{.keys = keys,
                     .queries = put(device, queries),
                     .values = put_numbers(device, random, count(columns)),
                     .tokens = tokens,
                     .streams = streams,
                     .columns = columns,
                     .output = room(device, all, Access::kHost)};
  device.queue(match);
  const Slice opened = match.output;
  match.output = keys;
  device.queue(match);
  const Slice gates = put_numbers(device, random, count(streams), Access::kHost);
  const Slice output = put_numbers(device, random, all, Access::kHost);
  device.queue(InjectStreams{.x = keys,  // the first numbers of them
                             .gates = gates,
                             .tokens = tokens,
                             .streams = streams,
                             .columns = columns,
                             .output = output});
  return {{keys, all}, {opened, all}, {gates, count(streams)}, {output, all}};
}

}  // namespace lockstep::testing
