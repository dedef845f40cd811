// The operations of sparse attention on the CPU: the norm of the index's key, keys of pools, and
// the choice of positions and pools.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "device/cpu/choice.h"
#include "device/device_values.h"
#include "kernels/isa.h"

using namespace lockstep;

namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// The chosen places, in ascending order.
std::vector<size_t> chosen_of(const std::vector<float>& scores, int count) {
  std::vector<uint32_t> words((scores.size() + 63) / 64 * 2, ~0u);
  choose_best(scores, count, words.data());
  std::vector<size_t> places;
  for (size_t place = 0; place < words.size() * 32; ++place) {
    if ((words[place / 32] >> place % 32 & 1) != 0) places.push_back(place);
  }
  return places;
}

// By sorting all of them.
std::vector<size_t> by_definition(const std::vector<float>& scores, int count) {
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    if (std::isnan(scores[a]) || std::isnan(scores[b])) {
      return !std::isnan(scores[a]) && std::isnan(scores[b]);
    }
    return scores[a] > scores[b];
  });
  order.resize(static_cast<size_t>(count));
  std::sort(order.begin(), order.end());
  return order;
}

}  // namespace

TEST_CASE("the largest scores are chosen") {
  Numbers numbers;
  for (const int size : {2, 31, 64, 65, 200, 1000}) {
    const std::vector<float> scores = numbers.take(size);
    for (const int count : {1, 2, size / 2, size - 1}) {
      if (count < 1 || count >= size) continue;
      CHECK(chosen_of(scores, count) == by_definition(scores, count));
    }
  }
}

TEST_CASE("among equal scores the lower position is chosen") {
  CHECK(chosen_of(std::vector<float>(130, 2.0f), 70) == by_definition(std::vector<float>(130), 70));
  CHECK(chosen_of({1, 3, 3, 1, 3, 2}, 2) == std::vector<size_t>{1, 2});
  CHECK(chosen_of({1, 3, 3, 1, 3, 2}, 5) == std::vector<size_t>{0, 1, 2, 4, 5});
  Numbers numbers;
  std::vector<float> scores = numbers.take(700);
  for (float& score : scores) score = std::round(2 * score);  // few different ones
  for (const int count : {1, 20, 333, 699}) {
    CHECK(chosen_of(scores, count) == by_definition(scores, count));
  }
}

TEST_CASE("zeros of both signs and subnormal scores are equal") {
  CHECK(chosen_of({-0.0f, 0.0f, 1e-40f, -1e-40f}, 2) == std::vector<size_t>{0, 1});
  CHECK(chosen_of({-0.0f, 1.2e-38f, -1.2e-38f, 0.0f}, 2) == std::vector<size_t>{0, 1});
}

TEST_CASE("a score that is no number is chosen last") {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  CHECK(chosen_of({kNan, -1, -kInfinity, kInfinity}, 3) == std::vector<size_t>{1, 2, 3});
  CHECK(chosen_of({kNan, -kNan, -1, kNan}, 2) == std::vector<size_t>{0, 2});
}

TEST_CASE("a layer norm takes the mean out and adds the bias") {
  Numbers numbers;
  for (const int columns : {1, 24, 128, 300}) {
    const std::vector<float> x = numbers.take(3 * columns), weight = numbers.take(columns),
                             bias = numbers.take(columns);
    for (const KernelTable* table : available_kernels()) {
      CAPTURE(std::string(table->name));
      auto device = std::move(open_device({.kernels = table}).value());
      const Slice place = put(*device, x, Access::kHost);
      device->queue(LayerNorm{.x = place,
                              .weight = put(*device, weight),
                              .bias = put(*device, bias),
                              .tokens = 3,
                              .columns = columns,
                              .epsilon = 1e-6f});
      REQUIRE(device->wait().ok());
      const auto y = device->host(place.buffer);
      for (size_t token = 0; token < 3; ++token) {
        const float* row = x.data() + token * static_cast<size_t>(columns);
        const double mean = std::accumulate(row, row + columns, 0.0) / columns;
        double square = 0;
        for (int i = 0; i < columns; ++i) square += (row[i] - mean) * (row[i] - mean);
        const double scale = 1 / std::sqrt(square / columns + 1e-6);
        for (int i = 0; i < columns; ++i) {
          const auto c = static_cast<size_t>(i);
          const double wanted = (row[i] - mean) * scale * weight[c] + bias[c];
          CHECK(std::fabs(wanted - y[token * static_cast<size_t>(columns) + c]) < 1e-4);
        }
      }
    }
  }
}
