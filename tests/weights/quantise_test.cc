#include "weights/quantised/quantise.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "tensor/half.h"
#include "tensor/stored_rows.h"
#include "weights/source/quantising_source.h"

using namespace lockstep;

namespace {

constexpr int kAllBits[] = {2, 3, 4, 5, 6, 8};

struct Quantised {
  std::vector<std::byte> codes;
  std::vector<uint16_t> scales;
  std::vector<uint16_t> biases;
  QuantisationError error;
  bool is_sound = false;

  float scale(size_t group) const { return float_of_bf16(scales[group]); }
  float bias(size_t group) const { return float_of_bf16(biases[group]); }
  int code(size_t index, int bits) const {
    int value = 0;
    for (int k = 0; k < bits; ++k) {
      const size_t bit = index * static_cast<size_t>(bits) + static_cast<size_t>(k);
      value |= (std::to_integer<int>(codes[bit / 8]) >> (bit % 8) & 1) << k;
    }
    return value;
  }
  double weight(size_t index, int bits) const {
    const size_t group = index / kQuantisedGroup;
    return double{scale(group)} * code(index, bits) + bias(group);
  }
};

Quantised quantised(const std::vector<float>& weights, int bits) {
  Quantised result;
  result.codes.resize(affine_code_bytes(weights.size(), bits));
  result.scales.resize(weights.size() / kQuantisedGroup);
  result.biases.resize(weights.size() / kQuantisedGroup);
  result.is_sound = quantise_groups(
      weights, bits, {result.codes.data(), result.scales.data(), result.biases.data()},
      result.error);
  return result;
}

std::vector<float> normal_weights(size_t count, float deviation) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal(0, deviation);
  std::vector<float> weights(count);
  for (float& weight : weights) weight = float_of_bf16(bf16_of(normal(random)));
  return weights;
}

// The result of mx.quantize of MLX 0.30, in double: codes by float32 scales, which are then
// rounded.
double squared_error_of_mlx(const float* weights, int bits) {
  const auto [least, most] = std::minmax_element(weights, weights + kQuantisedGroup);
  const int code_max = (1 << bits) - 1;
  const bool is_low_larger = std::fabs(*least) > std::fabs(*most);
  float scale = std::max((*most - *least) / static_cast<float>(code_max), 1e-7F);
  if (!is_low_larger) scale = -scale;
  const float edge = is_low_larger ? *least : *most;
  const float zero_code = std::nearbyint(edge / scale);
  float bias = 0;
  if (zero_code != 0) {
    scale = edge / zero_code;
    bias = edge;
  }
  double sum = 0;
  for (int i = 0; i < kQuantisedGroup; ++i) {
    const float code =
        std::clamp(std::nearbyint((weights[i] - bias) / scale), 0.0F, static_cast<float>(code_max));
    const double back = double{code} * float_of_bf16(bf16_of(scale)) + float_of_bf16(bf16_of(bias));
    sum += (weights[i] - back) * (weights[i] - back);
  }
  return sum;
}

// One matrix of floats under any name.
class OneMatrix final : public WeightSource {
 public:
  OneMatrix(std::vector<float> values, int columns)
      : values_(std::move(values)), columns_(columns) {}

  Result<StoredMatrix> matrix(const MatrixRequest& request) const override {
    StoredMatrix matrix;
    matrix.rows = request.rows;
    matrix.columns = columns_;
    matrix.codes = std::as_bytes(std::span<const float>(values_));
    matrix.row_bytes = static_cast<size_t>(columns_) * sizeof(float);
    // Not part of a file: its pages must not be released.
    matrix.owner = std::shared_ptr<const void>(std::shared_ptr<void>(), values_.data());
    return matrix;
  }
  Result<StoredVector> vector(std::string_view, int, int) const override {
    return StoredVector{DType::kF32, std::as_bytes(std::span<const float>(values_))};
  }
  std::vector<int64_t> shape_of(std::string_view) const override { return {}; }
  bool has(std::string_view name, int) const override {
    return name.find("kv_b_proj") != std::string_view::npos;
  }
  uint64_t file_bytes() const override { return values_.size() * sizeof(float); }

 private:
  std::vector<float> values_;
  int columns_;
};

std::vector<float> row_of(const StoredMatrix& matrix, int row, int begin, int end) {
  std::vector<float> out(static_cast<size_t>(end - begin));
  dequantise_row(matrix, row, begin, out);
  return out;
}

}  // namespace

TEST_CASE("weights on a grid come back exactly, with the expected codes") {
  // 0, 1, ..., 15 four times over: scale 1 and bias 0, or mirrored.
  std::vector<float> weights(64);
  for (size_t i = 0; i < 64; ++i) weights[i] = static_cast<float>(i % 16);
  const Quantised q = quantised(weights, 4);
  REQUIRE(q.is_sound);
  CHECK(q.scale(0) == -1);
  CHECK(q.bias(0) == 15);
  // The first two weights, 0 and 1, have the codes 15 and 14: the lower nibble is the first.
  CHECK(q.codes[0] == std::byte{0xef});
  CHECK(q.codes[7] == std::byte{0x01});
  for (size_t i = 0; i < 64; ++i) CHECK(q.weight(i, 4) == weights[i]);
  CHECK(q.error.squared_error == 0);
  CHECK(q.error.largest == 0);
}

TEST_CASE("codes of three bits are packed across bytes") {
  std::vector<float> weights(64);
  for (size_t i = 0; i < 64; ++i) weights[i] = -static_cast<float>(i % 8);
  const Quantised q = quantised(weights, 3);
  REQUIRE(q.is_sound);
  CHECK(q.scale(0) == 1);
  CHECK(q.bias(0) == -7);
  // 7 6 5 4 3 2 1 0, three bits each from the lowest: 0b000001010011100101110111.
  CHECK(q.codes[0] == std::byte{0x77});
  CHECK(q.codes[1] == std::byte{0x39});
  CHECK(q.codes[2] == std::byte{0x05});
}

TEST_CASE("zeros stay zeros and a constant group its constant") {
  for (const int bits : kAllBits) {
    for (const float value : {0.0F, 1.5F, -0.03125F, 1e-12F}) {
      const float stored = float_of_bf16(bf16_of(value));
      const Quantised q = quantised(std::vector<float>(64, stored), bits);
      REQUIRE(q.is_sound);
      for (size_t i = 0; i < 64; ++i) CHECK(std::fabs(q.weight(i, bits) - stored) < 1e-11);
      CHECK(q.error.largest < 1e-11);
      if (value == 0) CHECK(q.error.relative_rms() == 0);
    }
  }
}

TEST_CASE("unclipped inner weights are off by at most half a step and its rounding") {
  const std::vector<float> weights = normal_weights(size_t{64} * 200, 0.02F);
  for (const int bits : kAllBits) {
    const Quantised q = quantised(weights, bits);
    REQUIRE(q.is_sound);
    double squared_error = 0, largest = 0;
    for (size_t i = 0; i < weights.size(); ++i) {
      const double miss = std::fabs(weights[i] - q.weight(i, bits));
      const double scale = std::fabs(q.scale(i / 64));
      const int code = q.code(i, bits);
      const double rounding = (std::fabs(weights[i]) + std::fabs(q.bias(i / 64))) * 0x1p-22;
      if (code > 0 && code < (1 << bits) - 1) REQUIRE(miss <= scale / 2 + rounding);
      squared_error += miss * miss;
      largest = std::max(largest, miss);
    }
    CHECK(q.error.squared_error == doctest::Approx(squared_error).epsilon(1e-3));
    CHECK(q.error.largest == doctest::Approx(largest).epsilon(1e-3));
  }
}

TEST_CASE("no group is worse than MLX's, and the total error is clearly smaller") {
  const std::vector<float> weights = normal_weights(size_t{64} * 500, 0.02F);
  for (const int bits : kAllBits) {
    double ours = 0, theirs = 0;
    for (size_t i = 0; i < weights.size(); i += 64) {
      const std::vector<float> group(weights.begin() + static_cast<ptrdiff_t>(i),
                                     weights.begin() + static_cast<ptrdiff_t>(i) + 64);
      const double mlx = squared_error_of_mlx(group.data(), bits);
      const Quantised q = quantised(group, bits);
      // MLX chooses codes before it rounds the scale, which at eight bits is occasionally better.
      REQUIRE(q.error.squared_error <= mlx * (bits == 8 ? 1.1 : 1.001));
      ours += q.error.squared_error;
      theirs += mlx;
    }
    CHECK(std::sqrt(ours / theirs) < 0.95);
  }
}

TEST_CASE("a NaN, infinite or enormous weight is refused") {
  const float kBad[] = {std::numeric_limits<float>::quiet_NaN(),
                        std::numeric_limits<float>::infinity(),
                        -std::numeric_limits<float>::infinity(), 1e30F};
  for (const float bad : kBad) {
    for (const size_t at : {size_t{0}, size_t{77}, size_t{127}}) {
      std::vector<float> weights = normal_weights(128, 1);
      weights[at] = bad;
      CHECK_FALSE(quantised(weights, 4).is_sound);
    }
  }
}

TEST_CASE("a part of a matrix is quantised as the whole one is") {
  const int rows = 9, columns = 256;
  const auto source = std::make_shared<OneMatrix>(normal_weights(rows * columns, 0.1F), columns);
  for (const int bits : kAllBits) {
    const QuantisingSource alone(source, {.bits = bits});
    const QuantisingSource threads(source, {.bits = bits, .threads = 3});
    const MatrixRequest all{.name = "a.weight", .rows = rows, .columns = columns};
    MatrixRequest some = all;
    some.row_begin = 2;
    some.row_end = 7;
    some.column_begin = 96;  // inside a group
    some.column_end = 192;
    const auto whole = alone.matrix(all), part = threads.matrix(some);
    REQUIRE(whole.ok());
    REQUIRE(part.ok());
    CHECK(part.value().bits == bits);
    CHECK(part.value().row_bytes == whole.value().row_bytes);
    for (int row = 2; row < 7; ++row) {
      CHECK(row_of(part.value(), row, 64, 192) == row_of(whole.value(), row, 64, 192));
    }
  }
}

TEST_CASE("some matrices get other bits, and those without whole groups are not quantised") {
  const auto source = std::make_shared<OneMatrix>(normal_weights(256, 1), 64);
  const QuantisingSource quantising(
      source, {.bits = 2, .bits_of = {{"router.weight", 8}, {"kept.weight", 0}}});
  const auto form = [&](std::string_view name, int rows, int columns) {
    const auto matrix = quantising.matrix({.name = name, .rows = rows, .columns = columns});
    REQUIRE(matrix.ok());
    return matrix.value();
  };
  CHECK(form("a.weight", 4, 64).bits == 2);
  CHECK(form("router.weight", 4, 64).bits == 8);
  CHECK(form("kept.weight", 4, 64).format == StoredFormat::kPlain);
  const OneMatrix narrow(normal_weights(320, 1), 80);
  CHECK(quantising.bits_of("a.weight", 80) == 0);
}

TEST_CASE("heads of latent attention are split into a transposed key matrix and a value matrix") {
  const LatentHeads latent{.count = 2, .nope = 64, .value = 3, .kv_rank = 128};
  std::vector<float> values(static_cast<size_t>(latent.rows()) * 128);
  // Whole numbers below 256 in each group: exact at 8 bits.
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * 37 % 256);
  for (size_t i = 0; i < values.size(); ++i) {
    if (i % 64 == 0) values[i] = 0;
    if (i % 64 == 1) values[i] = 255;
  }
  const auto source = std::make_shared<OneMatrix>(values, 128);
  const QuantisingSource quantising(source, {.bits = 8, .latent = latent});
  CHECK_FALSE(quantising.has("l.kv_b_proj.weight"));
  CHECK(quantising.has("l.embed_q.weight", 1));
  QuantisationError error;
  const auto key = quantising.quantise(
      {.name = "l.embed_q.weight", .stack_index = 1, .rows = 128, .columns = 64}, error);
  const auto value = quantising.quantise(
      {.name = "l.unembed_out.weight", .stack_index = 1, .rows = 3, .columns = 128}, error);
  REQUIRE(key.ok());
  REQUIRE(value.ok());
  const size_t head = 67;  // its first row
  for (int row = 0; row < 128; ++row) {
    const std::vector<float> got = row_of(key.value(), row, 0, 64);
    for (size_t column = 0; column < 64; ++column) {
      const float wanted = values[(head + column) * 128 + static_cast<size_t>(row)];
      REQUIRE(std::fabs(got[column] - wanted) <= 0.51F);
    }
  }
  for (int row = 0; row < 3; ++row) {
    const std::vector<float> got = row_of(value.value(), row, 0, 128);
    for (size_t column = 0; column < 128; ++column) {
      REQUIRE(got[column] == values[(head + 64 + static_cast<size_t>(row)) * 128 + column]);
    }
  }
}

TEST_CASE("a matrix with a NaN weight is refused by its name") {
  std::vector<float> values = normal_weights(128, 1);
  values[100] = std::numeric_limits<float>::quiet_NaN();
  const auto source = std::make_shared<OneMatrix>(values, 64);
  const QuantisingSource quantising(source, {.bits = 4});
  MatrixRequest request{.name = "model.embed_tokens.weight", .rows = 2, .columns = 64};
  const auto refused = quantising.matrix(request);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code == ErrorCode::kCorrupt);
  CHECK(refused.error().message.find("model.embed_tokens.weight") != std::string::npos);
  request.row_end = 1;
  CHECK(quantising.matrix(request).ok());
}

TEST_CASE("an already quantised matrix is quantised again only on request") {
  class Twice final : public WeightSource {
   public:
    explicit Twice(std::shared_ptr<const WeightSource> source)
        : first_(std::move(source), {.bits = 8}) {}
    Result<StoredMatrix> matrix(const MatrixRequest& request) const override {
      return first_.matrix(request);
    }
    Result<StoredVector> vector(std::string_view name, int index, int size) const override {
      return first_.vector(name, index, size);
    }
    std::vector<int64_t> shape_of(std::string_view name) const override {
      return first_.shape_of(name);
    }
    bool has(std::string_view name, int index) const override { return first_.has(name, index); }
    uint64_t file_bytes() const override { return 0; }

   private:
    QuantisingSource first_;
  };
  const auto source =
      std::make_shared<Twice>(std::make_shared<OneMatrix>(normal_weights(128, 1), 64));
  const MatrixRequest request{.name = "a.weight", .rows = 2, .columns = 64};
  const auto refused = QuantisingSource(source, {.bits = 4}).matrix(request);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code == ErrorCode::kUnsupported);
  CHECK(refused.error().message.find("--requantise") != std::string::npos);
  const auto again = QuantisingSource(source, {.bits = 4, .requantises = true}).matrix(request);
  REQUIRE(again.ok());
  CHECK(again.value().bits == 4);
}
