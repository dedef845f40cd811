// Several residual streams on the CPU, against their equations in double precision.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "device/device_values.h"
#include "kernels/isa.h"

using namespace lockstep;

namespace {

constexpr int kTokens = 3;
constexpr double kEpsilon = 1e-6;

double opened(double x) {
  return 1 / (1 + std::exp(-x));
}

// Divides numbers `stride` apart by their sum.
void divide_by_sum(double* first, int count, int stride) {
  double sum = kEpsilon;
  for (int i = 0; i < count; ++i) sum += first[i * stride];
  for (int i = 0; i < count; ++i) first[i * stride] /= sum;
}

void balance(double* mix, int n, int rounds) {
  for (int row = 0; row < n; ++row) {
    double* const own = mix + row * n;
    double sum = 0;
    for (int i = 0; i < n; ++i) sum += own[i] = std::exp(own[i]);
    for (int i = 0; i < n; ++i) own[i] = own[i] / sum + kEpsilon;
  }
  for (int round = 0; round < rounds; ++round) {
    for (int row = 0; round > 0 && row < n; ++row) divide_by_sum(mix + row * n, n, 1);
    for (int column = 0; column < n; ++column) divide_by_sum(mix + column, n, n);
  }
}

// Numbers of a token's gates; without rounds only those of the sum.
size_t width_of(int streams, int rounds) {
  return rounds > 0 ? gates_of(streams) : static_cast<size_t>(streams);
}

// The gates of one token.
std::vector<double> gates_by_definition(const float* x, const std::vector<float>& scale,
                                        const std::vector<float>& bias, int n, int rounds) {
  std::vector<double> gates(width_of(n, rounds));
  for (size_t i = 0; i < gates.size(); ++i) {
    const size_t part = std::min(i / static_cast<size_t>(n), size_t{2});
    gates[i] = double{x[i]} * scale[part] + bias[i];
    if (part == 0) gates[i] = opened(gates[i]) + kEpsilon;
    if (part == 1) gates[i] = 2 * opened(gates[i]);
  }
  if (rounds > 0) balance(gates.data() + 2 * n, n, rounds);
  return gates;
}

struct Gates {
  std::vector<float> x, scale, bias;
  std::vector<float> found;

  Gates(const KernelTable& table, int streams, int rounds, float size) {
    Numbers numbers;
    const auto width = static_cast<int>(width_of(streams, rounds));
    x = numbers.take(kTokens * width);
    for (float& value : x) value *= size;
    scale = numbers.take(rounds > 0 ? 3 : 1);
    bias = numbers.take(width);
    auto device = std::move(open_device({.kernels = &table}).value());
    const Slice place = put(*device, x, Access::kHost);
    device->queue(StreamGates{.x = place,
                              .scale = put(*device, scale),
                              .bias = put(*device, bias),
                              .tokens = kTokens,
                              .streams = streams,
                              .rounds = rounds,
                              .epsilon = static_cast<float>(kEpsilon)});
    REQUIRE(device->wait().ok());
    const auto values = device->host(place.buffer);
    found.assign(values.begin(), values.begin() + kTokens * width);
  }
};

}  // namespace

// An exponent of at most 20 is wrong by at most 2^-19, so its exponential by that part of it; a
// division by sums adds some units in the last place, and makes no error larger.
TEST_CASE("gates of streams are near their equations") {
  for (const KernelTable* table : available_kernels()) {
    CAPTURE(std::string(table->name));
    for (const int streams : {1, 2, 3, 4, 8}) {
      for (const int rounds : {0, 1, 2, 20}) {
        const Gates gates(*table, streams, rounds, 4);
        const size_t width = width_of(streams, rounds);
        for (size_t token = 0; token < kTokens; ++token) {
          const std::vector<double> wanted = gates_by_definition(
              gates.x.data() + token * width, gates.scale, gates.bias, streams, rounds);
          for (size_t i = 0; i < width; ++i) {
            const double found = gates.found[token * width + i];
            CHECK(std::fabs(found - wanted[i]) <= 1e-5 * wanted[i]);
          }
        }
      }
    }
  }
}

TEST_CASE("after twenty rounds the columns of a mix have sums of nearly one, and its rows too") {
  for (const int streams : {1, 2, 4, 8}) {
    const Gates gates(*available_kernels().back(), streams, 20, 1);
    const auto n = static_cast<size_t>(streams);
    for (size_t token = 0; token < kTokens; ++token) {
      const float* const mix = gates.found.data() + token * gates_of(streams) + 2 * n;
      for (size_t i = 0; i < n; ++i) {
        double row = 0, column = 0;
        for (size_t j = 0; j < n; ++j) {
          row += mix[i * n + j];
          column += mix[j * n + i];
        }
        CHECK(std::fabs(column - 1) < 1e-5);
        CHECK(std::fabs(row - 1) < 1e-3);
      }
    }
  }
}

// A chain of n fused multiply-adds is wrong by at most n halves of a unit in the last place of the
// sum of its terms' sizes.
TEST_CASE("streams are summed and changed as their equations say") {
  for (const KernelTable* table : available_kernels()) {
    CAPTURE(std::string(table->name));
    for (const int streams : {1, 2, 4, 8}) {
      for (const int columns : {1, 16, 23, 1024, 1050}) {
        Numbers numbers;
        const auto n = static_cast<size_t>(streams), width = static_cast<size_t>(columns);
        const size_t row = gates_of(streams);
        const std::vector<float> all = numbers.take(kTokens * streams * columns);
        const std::vector<float> x = numbers.take(kTokens * columns);
        const std::vector<float> gates = numbers.take(kTokens * static_cast<int>(row));
        auto device = std::move(open_device({.kernels = table}).value());
        const Slice place = put(*device, all, Access::kHost), by = put(*device, gates);
        const Slice own = room(*device, x.size(), Access::kHost);
        const Slice common = room(*device, x.size(), Access::kHost);
        CollapseStreams collapse{place, by, static_cast<int>(row), kTokens, streams, columns, own};
        device->queue(collapse);
        collapse.weights_stride = 0;
        collapse.output = common;
        device->queue(collapse);
        device->queue(UpdateStreams{put(*device, x), by, kTokens, streams, columns, place});
        REQUIRE(device->wait().ok());
        const auto of_token = device->host(own.buffer), of_all = device->host(common.buffer);
        const auto changed = device->host(place.buffer);
        const double bound = static_cast<double>(n + 1) * 0x1p-24;
        for (size_t at = 0; at < x.size(); ++at) {
          const size_t token = at / width, column = at % width;
          const float* const old = all.data() + token * n * width + column;
          const float* const pre = gates.data() + token * row;
          double sum = 0, size = 0, alike = 0;
          for (size_t s = 0; s < n; ++s) {
            sum += double{pre[s]} * old[s * width];
            alike += double{gates[s]} * old[s * width];
            size += std::fabs(double{old[s * width]});
          }
          CHECK(std::fabs(of_token[at] - sum) <= 8 * bound * size);  // no gate is above 8
          CHECK(std::fabs(of_all[at] - alike) <= 8 * bound * size);
          for (size_t to = 0; to < n; ++to) {
            double wanted = double{pre[n + to]} * x[at];
            for (size_t from = 0; from < n; ++from) {
              wanted += double{pre[2 * n + from * n + to]} * old[from * width];
            }
            const double found = changed[(token * n + to) * width + column];
            CHECK(std::fabs(found - wanted) <= 8 * bound * (size + std::fabs(x[at])));
          }
        }
      }
    }
  }
}
