// The operations of recurrent layers with random shapes, for gpu_operations.h.
#pragma once

#include <vector>

#include "device/gpu_compare.h"

namespace lockstep::testing {

// Which states the tokens of some sequences read and write: they begin, continue, and at times go
// on under another number.
struct RandomStates {
  static constexpr int kStates = 6;
  std::vector<int32_t> from, to;

  RandomStates(Random& random, int tokens) {
    std::vector<int32_t> last{-1, 1};  // of two sequences
    int32_t free = 2;
    for (int token = 0; token < tokens; ++token) {
      int32_t& own = last[static_cast<size_t>(between(random, 0, 1))];
      from.push_back(own);
      if (own < 0 || (free < kStates && random() % 3 == 0)) own = free < kStates ? free++ : 0;
      to.push_back(own);
    }
  }
};

// Convolutions and the delta rule, on states that some tokens continue.
inline std::vector<Output> recurrent(Device& device, Random& random) {
  const int tokens = between(random, 1, 7), key_heads = between(random, 1, 3);
  const int value_heads = key_heads * between(random, 1, 2);
  const int key_dim = between(random, 1, 40), value_dim = between(random, 1, 90);
  const int taps = between(random, 1, 5), decays = random() % 2 == 0 ? 1 : key_dim;
  const int channels = key_heads * key_dim, values = value_heads * value_dim;
  const int dilation = between(random, 1, 3);
  const auto count = [&](int width) { return static_cast<size_t>(tokens * width); };
  const auto past = static_cast<size_t>((taps - 1) * dilation * channels);
  const size_t state = past + static_cast<size_t>(value_heads * key_dim * value_dim);
  const size_t stride = state + static_cast<size_t>(between(random, 0, 9));
  const size_t all = RandomStates::kStates * stride;
  const Slice memory = put_numbers(device, random, all, Access::kHost);
  const RandomStates numbers(random, tokens);
  const StateSlots states{.memory = memory,
                          .stride = stride,
                          .from = put_ints(device, numbers.from),
                          .to = put_ints(device, numbers.to)};
  const Slice key = put_numbers(device, random, count(channels), Access::kHost);
  Convolve convolve{.states = states, .taps = taps, .tokens = tokens, .dilation = dilation};
  convolve.parts[1] = {.x = key,
                       .weights = put_numbers(device, random, static_cast<size_t>(taps * channels)),
                       .channels = channels,
                       .y = key};
  device.queue(convolve);
  const Slice rate = put_numbers(device, random, count(value_heads), Access::kHost);
  device.queue(Sigmoid{rate, count(value_heads)});
  const Slice opened = put_numbers(device, random, count(values), Access::kHost);
  device.queue(Silu{opened, count(values)});
  const int width = value_heads * decays;
  const Slice decay = put_numbers(device, random, count(width), Access::kHost);
  device.queue(Decay{decay, put_numbers(device, random, static_cast<size_t>(width)),
                     put_numbers(device, random, static_cast<size_t>(width)), tokens, width});
  const Slice bounded = put_numbers(device, random, count(width), Access::kHost);
  device.queue(Decay{bounded, put_numbers(device, random, static_cast<size_t>(width)),
                     put_numbers(device, random, static_cast<size_t>(width)), tokens, width,
                     static_cast<float>(-between(random, 1, 40)) / 4.0f});
  const Slice output = put(device, std::vector<float>(count(values)), Access::kHost);
  device.queue(DeltaRule{.states = states,
                         .state_offset = past,
                         .query = put_numbers(device, random, count(channels)),
                         .key = key,
                         .value = put_numbers(device, random, count(values)),
                         .decay = decay,
                         .rate = rate,
                         .tokens = tokens,
                         .key_heads = key_heads,
                         .value_heads = value_heads,
                         .key_dim = key_dim,
                         .value_dim = value_dim,
                         .decays = decays,
                         .output = output});
  return {{memory, all},           {key, count(channels)},  {decay, count(width)},
          {bounded, count(width)}, {opened, count(values)}, {output, count(values)}};
}

}  // namespace lockstep::testing
