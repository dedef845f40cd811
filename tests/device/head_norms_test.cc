// Norms over heads of which a device has some: the definition, and the same bits for any share.
#include <doctest/doctest.h>

#include <cmath>
#include <random>
#include <vector>

#include "device/device.h"
#include "kernels/isa.h"

using namespace lockstep;

namespace {

constexpr int kTokens = 3, kHeads = 5;
constexpr float kEpsilon = 1e-5f;

// The equations of docs/internals/arithmetic.md.
float definition_of_squares(const float* x, int head_dim) {
  std::vector<float> lanes(128, 0.0f);
  for (int i = 0; i < head_dim; ++i) {
    const float square = x[i] * x[i];
    lanes[static_cast<size_t>(i % 128)] += square;
  }
  for (size_t half = 64; half > 0; half /= 2) {
    for (size_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  }
  return lanes[0];
}

std::vector<float> numbers(size_t count) {
  std::mt19937 random(11);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

std::vector<float> defined_norm(const std::vector<float>& x, const std::vector<float>& weight,
                                int head_dim) {
  std::vector<float> y;
  const auto columns = static_cast<size_t>(kHeads * head_dim);
  for (size_t token = 0; token < kTokens; ++token) {
    float sum = 0;
    for (int head = 0; head < kHeads; ++head) {
      sum += definition_of_squares(x.data() + token * columns + head * head_dim, head_dim);
    }
    const float scale = 1.0f / std::sqrt(sum / static_cast<float>(columns) + kEpsilon);
    for (size_t i = 0; i < columns; ++i) y.push_back((x[token * columns + i] * scale) * weight[i]);
  }
  return y;
}

struct Part {
  Slice x;
  Slice weight;
  int heads;
};

class HeadNorms {
 public:
  explicit HeadNorms(int head_dim, int threads)
      : head_dim_(head_dim),
        device_(std::move(
            open_device({.kind = "cpu", .threads = threads, .kernels = available_kernels().back()})
                .value())) {}

  // The heads [begin, end) of each token, as a rank has them.
  Part put(const std::vector<float>& x, const std::vector<float>& weight, int begin, int end) {
    std::vector<float> own;
    for (int token = 0; token < kTokens; ++token) {
      const auto* row = x.data() + token * kHeads * head_dim_;
      own.insert(own.end(), row + begin * head_dim_, row + end * head_dim_);
    }
    return {put(own), put({weight.begin() + begin * head_dim_, weight.begin() + end * head_dim_}),
            end - begin};
  }
  Slice put(const std::vector<float>& values) {
    const Slice slice{device_->allocate(values.size() * sizeof(float), Access::kHost).value(), 0};
    device_->write(slice, std::as_bytes(std::span<const float>(values)));
    return slice;
  }
  void add_squares(const Part& part, Slice squares, int begin) {
    device_->queue(HeadSquares{.x = part.x,
                               .x_stride = part.heads * head_dim_,
                               .tokens = kTokens,
                               .heads = part.heads,
                               .head_dim = head_dim_,
                               .output = {squares.buffer, static_cast<size_t>(begin)},
                               .output_stride = kHeads});
  }
  std::vector<float> norm(const Part& part, Slice squares) {
    device_->queue(NormHeads{.x = part.x,
                             .weight = part.weight,
                             .tokens = kTokens,
                             .heads = part.heads,
                             .head_dim = head_dim_,
                             .squares = squares,
                             .squares_stride = kHeads,
                             .all_heads = kHeads,
                             .epsilon = kEpsilon});
    REQUIRE(device_->wait().ok());
    const auto values = device_->host(part.x.buffer);
    return {values.begin(), values.begin() + kTokens * part.heads * head_dim_};
  }

 private:
  int head_dim_;
  std::unique_ptr<Device> device_;
};

}  // namespace

TEST_CASE("a norm over heads is what the definition says, however the heads are shared out") {
  for (const int head_dim : {1, 32, 127, 128, 300}) {
    CAPTURE(head_dim);
    const auto columns = static_cast<size_t>(kHeads * head_dim);
    const std::vector<float> x = numbers(kTokens * columns), weight = numbers(columns);
    const std::vector<float> expected = defined_norm(x, weight, head_dim);
    for (const int threads : {1, 3}) {
      for (const int first : {0, 2, kHeads}) {
        HeadNorms device(head_dim, threads);
        const Slice squares = device.put(std::vector<float>(kTokens * kHeads));
        const Part parts[] = {device.put(x, weight, 0, first),
                              device.put(x, weight, first, kHeads)};
        device.add_squares(parts[0], squares, 0);
        device.add_squares(parts[1], squares, first);
        const auto before = device.norm(parts[0], squares);
        const auto after = device.norm(parts[1], squares);
        for (size_t token = 0; token < kTokens; ++token) {
          const auto width = static_cast<size_t>(first * head_dim);
          for (size_t i = 0; i < columns; ++i) {
            const float value = i < width ? before[token * width + i]
                                          : after[token * (columns - width) + i - width];
            REQUIRE(value == expected[token * columns + i]);
          }
        }
      }
    }
  }
}
