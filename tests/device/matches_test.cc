// Norms with several weights, convolutions whose taps are some tokens apart, and streams that match
// or get their parts, on the CPU: as they are defined, for any threads and chunks.
#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "device/device_values.h"
#include "kernels/definition.h"
#include "kernels/isa.h"
#include "kernels/math.h"

using namespace lockstep;

namespace {

constexpr int kColumnCounts[] = {1, 16, 23, 130, 1100};

std::unique_ptr<Device> open(const KernelTable& table, int threads) {
  return std::move(open_device({.threads = threads, .kernels = &table}).value());
}

// Opens a device with each instruction set and some numbers of threads.
template <class Check>
void for_each_device(Check check) {
  for (const KernelTable* table : available_kernels()) {
    CAPTURE(std::string(table->name));
    for (const int threads : {1, 3}) {
      CAPTURE(threads);
      const auto device = open(*table, threads);
      check(*device);
    }
  }
}

void check_bits(Device& device, Slice slice, const std::vector<float>& wanted) {
  REQUIRE(device.wait().ok());
  const auto found = device.host(slice.buffer);
  size_t different = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const float x = found[slice.offset + i];
    different += x == wanted[i] || (std::isnan(x) && std::isnan(wanted[i])) ? 0 : 1;
  }
  CHECK(different == 0);
}

std::vector<float> part_of(const std::vector<float>& all, size_t begin, size_t count) {
  const auto first = all.begin() + static_cast<std::ptrdiff_t>(begin);
  return {first, first + static_cast<std::ptrdiff_t>(count)};
}

}  // namespace

TEST_CASE("rows of a norm take the rows of its weight in turn") {
  for_each_device([](Device& device) {
    for (const int columns : kColumnCounts) {
      for (const int weights : {1, 2, 4}) {
        for (const int tokens : {0, 1, 9}) {
          Numbers numbers;
          const auto width = static_cast<size_t>(columns);
          const std::vector<float> x = numbers.take(tokens * columns);
          const std::vector<float> weight = numbers.take(weights * columns);
          const Slice y = put(device, x, Access::kHost);
          device.queue(RmsNorm{.x = y,
                               .weight = put(device, weight),
                               .tokens = tokens,
                               .columns = columns,
                               .epsilon = 1e-5f,
                               .y = y,
                               .weights = weights});
          std::vector<float> wanted;
          for (size_t row = 0; row < static_cast<size_t>(tokens); ++row) {
            const auto own = part_of(weight, row % static_cast<size_t>(weights) * width, width);
            const auto normed = definition::rms_norm(x.data() + row * width, own, 1e-5f);
            wanted.insert(wanted.end(), normed.begin(), normed.end());
          }
          check_bits(device, y, wanted);
        }
      }
    }
  });
}

TEST_CASE("silu is x * sigmoid(x)") {
  for_each_device([](Device& device) {
    for (const int count : {0, 1, 15, 16, 23, 5000}) {
      Numbers numbers;
      const std::vector<float> x = numbers.take(count);
      std::vector<float> wanted;
      for (const float value : x) wanted.push_back(value * sigmoid_f32(value));
      const Slice place = put(device, x, Access::kHost);
      device.queue(Silu{place, x.size()});
      check_bits(device, place, wanted);
    }
  });
}

TEST_CASE("streams get their parts by gates of their own, which stay") {
  for_each_device([](Device& device) {
    for (const int streams : {1, 4, 8}) {
      for (const int columns : kColumnCounts) {
        for (const int tokens : {0, 1, 3}) {
          Numbers numbers;
          const auto n = static_cast<size_t>(streams), width = static_cast<size_t>(columns);
          const std::vector<float> x = numbers.take(tokens * columns);
          const std::vector<float> gates = numbers.take(tokens * streams);
          std::vector<float> wanted = numbers.take(tokens * streams * columns);
          const Slice output = put(device, wanted, Access::kHost);
          const Slice by = put(device, gates, Access::kHost);
          device.queue(InjectStreams{put(device, x), by, tokens, streams, columns, output});
          for (size_t at = 0; at < wanted.size(); ++at) {
            const size_t token = at / (n * width), stream = at / width % n;
            const float opened = 2 * sigmoid_f32(gates[token * n + stream]);
            wanted[at] = std::fma(opened, x[token * width + at % width], wanted[at]);
          }
          check_bits(device, output, wanted);
          check_bits(device, by, gates);
        }
      }
    }
  });
}

TEST_CASE("values are opened for each stream by the match of its key and query") {
  for_each_device([](Device& device) {
    for (const int streams : {1, 4}) {
      for (const int columns : kColumnCounts) {
        for (const int tokens : {0, 1, 3}) {
          Numbers numbers;
          const auto width = static_cast<size_t>(columns);
          const std::vector<float> keys = numbers.take(tokens * streams * columns);
          const std::vector<float> queries = numbers.take(tokens * streams * columns);
          const std::vector<float> values = numbers.take(tokens * columns);
          const Slice place = put(device, keys, Access::kHost);
          MatchStreams op{place,
                          put(device, queries),
                          put(device, values),
                          tokens,
                          streams,
                          columns,
                          room(device, keys.size(), Access::kHost)};
          device.queue(op);
          std::vector<float> wanted;
          for (size_t row = 0; row < static_cast<size_t>(tokens * streams); ++row) {
            const float opened = definition::match(part_of(keys, row * width, width),
                                                   part_of(queries, row * width, width));
            const size_t of = row / static_cast<size_t>(streams) * width;
            for (size_t i = 0; i < width; ++i) wanted.push_back(opened * values[of + i]);
          }
          check_bits(device, op.output, wanted);
          check_bits(device, place, keys);
          op.output = place;
          device.queue(op);
          check_bits(device, place, wanted);
        }
      }
    }
  });
}

namespace {

// Two sequences whose tokens alternate; the second begins later and at times goes on under another
// number of its state.
struct DilatedRun {
  static constexpr int kTaps = 4, kDilation = 3, kChannels = 37, kTokens = 60, kStates = 4;
  static constexpr size_t kPast = size_t{kTaps - 1} * kDilation, kWidth = kChannels;
  static constexpr size_t kStride = kPast * kWidth + 5;

  DilatedRun() {
    Numbers numbers;
    x = numbers.take(kTokens * kChannels);
    weights = numbers.take(kTaps * kChannels);
    int32_t second = -1;
    for (int token = 0; token < kTokens; ++token) {
      const bool is_first = token < 6 || token % 2 == 0;
      from.push_back(is_first ? (token == 0 ? -1 : 0) : second);
      if (!is_first) second = token % 3 == 0 ? 1 : second < 0 ? 3 : second == 1 ? 2 : second;
      to.push_back(is_first ? 0 : second);
    }
  }
  std::vector<float> wanted() const {
    std::vector<float> all;
    std::vector<size_t> before[2];  // tokens of each sequence
    for (size_t token = 0; token < kTokens; ++token) {
      auto& own = before[token < 6 || token % 2 == 0 ? 0 : 1];
      own.push_back(token);
      for (size_t c = 0; c < kWidth; ++c) {
        std::vector<float> inputs, of_channel;
        for (size_t tap = 0; tap < kTaps; ++tap) {
          const size_t back = (kTaps - 1 - tap) * kDilation;
          const bool exists = back < own.size();
          inputs.push_back(exists ? x[own[own.size() - 1 - back] * kWidth + c] : 0.0f);
          of_channel.push_back(weights[tap * kWidth + c]);
        }
        all.push_back(definition::convolution(inputs, of_channel));
      }
    }
    return all;
  }
  // Chunks of so many tokens, in place or not.
  void check(Device& device, int chunk, bool is_in_place) const {
    const Slice input = put(device, x, Access::kHost), taps = put(device, weights);
    const Slice y = is_in_place ? input : room(device, x.size(), Access::kHost);
    const Slice states = put(device, std::vector<float>(kStates * kStride, NAN));
    const Slice from_slice = room(device, kTokens), to_slice = room(device, kTokens);
    device.write_ints(from_slice, from);
    device.write_ints(to_slice, to);
    for (int first = 0; first < kTokens; first += chunk) {
      const auto at = static_cast<size_t>(first);
      Convolve op{.states = {.memory = states,
                             .stride = kStride,
                             .from = {from_slice.buffer, at},
                             .to = {to_slice.buffer, at}},
                  .taps = kTaps,
                  .tokens = std::min(chunk, kTokens - first),
                  .dilation = kDilation};
      op.parts[1] = {.x = {input.buffer, at * kWidth},
                     .weights = taps,
                     .channels = kChannels,
                     .state_offset = 5,
                     .y = {y.buffer, at * kWidth}};
      device.queue(op);
    }
    check_bits(device, y, wanted());
  }

  std::vector<float> x, weights;
  std::vector<int32_t> from, to;
};

}  // namespace

TEST_CASE("a convolution with taps some tokens apart has the same bits for any chunks") {
  const DilatedRun run;
  for_each_device([&](Device& device) {
    for (const int chunk : {1, 2, 7, 16, DilatedRun::kTokens}) {
      run.check(device, chunk, false);
      run.check(device, chunk, true);
    }
  });
}
