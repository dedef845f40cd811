#include <doctest/doctest.h>

#include <algorithm>

#include "kernels/definition.h"
#include "kernels/math.h"
#include "kernels/test_data.h"

namespace lockstep {
namespace {

std::vector<float> drawn(uint64_t seed, size_t count, SampleKind kind) {
  SampleRandom random(seed);
  std::vector<float> values(count);
  for (float& value : values) value = draw(random, kind);
  return values;
}

constexpr size_t kCounts[] = {0, 1, 2, 15, 16, 17, 31, 32, 33, 100};

}  // namespace

TEST_CASE("embed reads a row of every element type exactly and skips other ranks' rows") {
  for (const KernelTable* table : available_kernels()) {
    for (PackedCodes type : kCodesByColumn) {
      for (int columns : {1, 16, 37}) {
        SampleRandom random(3);
        const MatrixByColumn matrix = random_matrix(random, type, 50, columns, SampleKind::kNasty);
        const std::vector<int32_t> rows = {49, -1, 0, 17, 16, 3};
        const size_t stride = static_cast<size_t>(columns) + 2;
        std::vector<float> output(rows.size() * stride, kUntouched);
        std::vector<float> expected = output;
        for (size_t token = 1; token < 5; ++token) {  // the first and the last belong to others
          if (rows[token] < 0) continue;
          for (int column = 0; column < columns; ++column) {
            expected[token * stride + static_cast<size_t>(column)] = matrix.at(rows[token], column);
          }
        }
        const std::vector<LeafStep> steps = {{columns, 0, 1}};
        const PackedMatrix view = matrix.view(steps);
        table->embed({
            .matrix = &view,
            .rows = rows.data(),
            .token_begin = 1,
            .token_end = 5,
            .output = output.data(),
            .output_stride = stride,
        });
        CHECK(first_difference(output, expected) == -1);
      }
    }
  }
}

TEST_CASE("every half precision number converts exactly, in lanes and one by one") {
  // A matrix of one column whose row r holds the number r; multiplying by 1 gives the value back,
  // except for -0.
  std::vector<uint16_t> halves(65536);
  for (size_t i = 0; i < halves.size(); ++i) halves[i] = static_cast<uint16_t>(i);
  std::vector<float> expected(halves.size());
  for (size_t i = 0; i < halves.size(); ++i) expected[i] = half_value(halves[i]);
  std::vector<int32_t> rows(halves.size());
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<int32_t>(i);
  const std::vector<LeafStep> steps = {{1, 0, 1}};
  const PackedMatrix matrix = view_by_column(PackedCodes::kF16, halves.data(), 65536, 1, steps);
  const float one = 1.0f;
  const MatmulPart part = {&matrix, &one, sizeof(one)};
  for (const KernelTable* table : available_kernels()) {
    std::vector<float> output(halves.size());
    table->embed({&matrix, nullptr, rows.data(), 0, 65536, output.data(), 1});
    CHECK(first_difference(output, expected) == -1);
    table->matmul({&part, 1, 0, 4096, 1, output.data(), 0, 0});
    output[0x8000] = -0.0f;
    CHECK(first_difference(output, expected) == -1);
  }
}

TEST_CASE("a norm takes the rows of its weight in turn") {
  constexpr size_t kTokens = 7, kColumns = 37, kWeights = 3;
  const std::vector<float> x = drawn(1, kTokens * kColumns, SampleKind::kPlain);
  const std::vector<float> weight = drawn(2, kWeights * kColumns, SampleKind::kPlain);
  for (const KernelTable* table : available_kernels()) {
    CAPTURE(std::string(table->name));
    std::vector<float> y(x.size(), kUntouched), expected = y;
    for (const auto& [begin, end] : {std::pair<size_t, size_t>{1, 2}, {2, kTokens}}) {
      table->rms_norm({.x = x.data(),
                       .x_stride = kColumns,
                       .weight = weight.data(),
                       .columns = kColumns,
                       .epsilon = 1e-5f,
                       .token_begin = static_cast<int32_t>(begin),
                       .token_end = static_cast<int32_t>(end),
                       .y = y.data(),
                       .y_stride = kColumns,
                       .weights = kWeights});
    }
    for (size_t token = 1; token < kTokens; ++token) {
      const auto own = weight.begin() + token % kWeights * kColumns;
      const auto row =
          definition::rms_norm(x.data() + token * kColumns, {own, own + kColumns}, 1e-5f);
      std::copy(row.begin(), row.end(), expected.begin() + token * kColumns);
    }
    CHECK(first_difference(y, expected) == -1);
  }
}

TEST_CASE("rms_norm is what the definition says and near the exact value, also in place") {
  for (const KernelTable* table : available_kernels()) {
    CAPTURE(std::string(table->name));
    for (size_t columns :
         {size_t{1}, size_t{15}, size_t{17}, size_t{64}, size_t{127}, size_t{128}, size_t{1000}}) {
      for (SampleKind kind : {SampleKind::kPlain, SampleKind::kNasty}) {
        // Nasty numbers are kept small enough to be squared.
        std::vector<float> x = drawn(columns, 3 * (columns + 1), kind);
        for (float& value : x) value = std::clamp(value, -1e15f, 1e15f);
        const std::vector<float> weight = drawn(columns + 1, columns, SampleKind::kPlain);
        RmsNormArgs args = {
            .x = x.data(),
            .x_stride = columns + 1,
            .weight = weight.data(),
            .columns = static_cast<int32_t>(columns),
            .epsilon = 1e-5f,
            .token_begin = 1,
            .token_end = 3,
        };
        std::vector<float> y(3 * (columns + 2), kUntouched);
        args.y = y.data();
        args.y_stride = columns + 2;
        table->rms_norm(args);
        std::vector<float> expected(y.size(), kUntouched);
        for (size_t token = 1; token < 3; ++token) {
          const auto row = definition::rms_norm(x.data() + token * (columns + 1), weight, 1e-5f);
          std::copy(row.begin(), row.end(), expected.begin() + token * (columns + 2));
        }
        REQUIRE(first_difference(y, expected) == -1);

        std::vector<float> in_place = x;
        args.x = args.y = in_place.data();
        args.y_stride = columns + 1;
        table->rms_norm(args);
        for (size_t token = 1; token < 3; ++token) {
          double squares = 0;
          const float* from = x.data() + token * (columns + 1);
          for (size_t i = 0; i < columns; ++i) squares += double{from[i]} * double{from[i]};
          const double scale =
              1.0 / std::sqrt(squares / static_cast<double>(columns) + double{1e-5f});
          for (size_t i = 0; i < columns; ++i) {
            const double exact = double{from[i]} * scale * double{weight[i]};
            const float value = y[token * (columns + 2) + i];
            // Squares are positive, so that their sum has a relative error of at most (columns /
            // 128 + 9) u.
            const double bound =
                std::fabs(exact) * (static_cast<double>(columns) / 128 + 20) * 0x1p-24;
            REQUIRE(std::fabs(double{value} - exact) <= bound + 0x1p-148);
            REQUIRE(in_place[token * (columns + 1) + i] == value);
          }
        }
      }
    }
  }
}

TEST_CASE("rope rotates the pairs of its tokens and leaves everything else alone") {
  struct Shape {
    int heads, head_dim, half;
  };
  for (const KernelTable* table : available_kernels()) {
    for (Shape shape :
         {Shape{1, 2, 1}, Shape{3, 8, 4}, Shape{2, 64, 32}, Shape{2, 80, 20}, Shape{5, 34, 17}}) {
      const auto half = static_cast<size_t>(shape.half);
      const auto head_dim = static_cast<size_t>(shape.head_dim);
      const size_t stride = static_cast<size_t>(shape.heads) * head_dim + 3;
      const std::vector<float> x = drawn(4, 4 * stride, SampleKind::kPlain);
      const std::vector<float> cosines_sines = drawn(5, 4 * 2 * half, SampleKind::kPlain);
      std::vector<float> expected = x;
      for (size_t token = 1; token < 3; ++token) {
        const float* cosine = cosines_sines.data() + token * 2 * half;
        for (size_t head = 0; head < static_cast<size_t>(shape.heads); ++head) {
          const size_t begin = token * stride + head * head_dim;
          for (size_t i = 0; i < half; ++i) {
            const float a = x[begin + i];
            const float b = x[begin + half + i];
            const float a_cosine = a * cosine[i], b_sine = b * cosine[half + i];
            const float b_cosine = b * cosine[i], a_sine = a * cosine[half + i];
            expected[begin + i] = a_cosine - b_sine;
            expected[begin + half + i] = b_cosine + a_sine;
          }
        }
      }
      std::vector<float> turned = x;
      table->rope({turned.data(), stride, shape.heads, shape.head_dim, shape.half,
                   cosines_sines.data(), 1, 3});
      CHECK(first_difference(turned, expected) == -1);
    }
  }
}

TEST_CASE("silu_mul is exactly gate * sigmoid_f32(gate) * up, whatever the count") {
  for (const KernelTable* table : available_kernels()) {
    CAPTURE(std::string(table->name));
    for (size_t count : kCounts) {
      std::vector<float> gate = drawn(count, count, SampleKind::kNasty);
      const std::vector<float> up = drawn(count + 1, count, SampleKind::kPlain);
      std::vector<float> expected(count + 4, kUntouched);
      for (size_t i = 0; i < count; ++i) expected[i] = gate[i] * sigmoid_f32(gate[i]) * up[i];
      std::vector<float> out(count + 4, kUntouched);
      table->silu_mul(gate.data(), up.data(), out.data(), count);
      CHECK(first_difference(out, expected) == -1);
      table->silu_mul(gate.data(), up.data(), gate.data(), count);
      expected.resize(count);
      CHECK(first_difference(gate, expected) == -1);
    }
  }
}

TEST_CASE("clamped_swiglu equals its definition bit for bit, whatever the count, and is accurate") {
  constexpr float kLimit = 7.0f;
  for (const KernelTable* table : available_kernels()) {
    CAPTURE(std::string(table->name));
    for (size_t count : kCounts) {
      std::vector<float> gate = drawn(count, count, SampleKind::kNasty);
      std::vector<float> up = drawn(count + 1, count, SampleKind::kNasty);
      for (size_t i = 0; i < count; i += 3) gate[i] *= 8.0f, up[i] *= 8.0f;  // around the limit
      std::vector<float> expected(count + 4, kUntouched);
      for (size_t i = 0; i < count; ++i) {
        const float g = std::min(gate[i], kLimit), u = std::clamp(up[i], -kLimit, kLimit);
        const float opened = sigmoid_f32(1.702f * g);
        expected[i] = (u + 1.0f) * (g * opened);
        const double exact = (double{u} + 1) * g / (1 + std::exp(-1.702 * double{g}));
        const double bound = (std::fabs(exact) + std::fabs(double{g} * opened)) * 0x1p-18;
        REQUIRE(std::fabs(double{expected[i]} - exact) <= bound + 0x1p-120);
      }
      std::vector<float> out(count + 4, kUntouched);
      table->clamped_swiglu(gate.data(), up.data(), kLimit, out.data(), count);
      CHECK(first_difference(out, expected) == -1);
      table->clamped_swiglu(gate.data(), up.data(), kLimit, gate.data(), count);
      expected.resize(count);
      CHECK(first_difference(gate, expected) == -1);
    }
  }
}

TEST_CASE("the exponential in lanes and exp_f32 give the same bits over the whole range") {
  std::vector<float> gate;
  for (int i = -1200; i <= 1200; ++i) gate.push_back(static_cast<float>(i) * 0.0813f);
  SampleRandom random(1);
  for (int i = 0; i < 20000; ++i) {  // any bit pattern
    gate.push_back(std::bit_cast<float>(static_cast<uint32_t>(random.bits() >> 32)));
  }
  for (float special : {0.0f, -0.0f, 87.33654f, -88.72283f, 88.72284f, INFINITY, -INFINITY, NAN}) {
    gate.push_back(special);
  }
  const std::vector<float> up(gate.size(), 1.0f);
  std::vector<float> expected(gate.size());
  for (size_t i = 0; i < gate.size(); ++i) expected[i] = gate[i] * sigmoid_f32(gate[i]);
  for (const KernelTable* table : available_kernels()) {
    std::vector<float> out(gate.size());
    table->silu_mul(gate.data(), up.data(), out.data(), gate.size());
    const int difference = first_difference(out, expected);
    CAPTURE(std::string(table->name));
    CHECK(difference == -1);
  }
}

TEST_CASE("add adds, whatever the count") {
  for (const KernelTable* table : available_kernels()) {
    for (size_t count : kCounts) {
      const std::vector<float> x = drawn(count, count, SampleKind::kNasty);
      std::vector<float> sum = drawn(count + 7, count + 4, SampleKind::kNasty);
      std::vector<float> expected = sum;
      for (size_t i = 0; i < count; ++i) expected[i] += x[i];
      table->add(x.data(), sum.data(), count);
      CHECK(first_difference(sum, expected) == -1);
    }
  }
}

}  // namespace lockstep
