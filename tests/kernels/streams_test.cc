// Kernels of several residual streams against their equations, whatever the sizes.
#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <utility>

#include "kernels/definition.h"
#include "kernels/math.h"
#include "kernels/test_data.h"

namespace lockstep {
namespace {

constexpr size_t kColumnCounts[] = {0, 1, 2, 15, 16, 17, 31, 33, 100};

// Streams further apart than their columns, with numbers between them that stay.
struct Streams {
  Streams(SampleRandom& random, size_t count, size_t columns)
      : count(count), columns(columns), stride(columns + 3), values(random.units(count * stride)) {}

  std::vector<float> column(size_t c) const {
    std::vector<float> all;
    for (size_t s = 0; s < count; ++s) all.push_back(values[s * stride + c]);
    return all;
  }

  // With the columns that `define(c)` gives.
  template <class Define>
  std::vector<float> changed(Define define) const {
    std::vector<float> all = values;
    for (size_t c = 0; c < columns; ++c) {
      const std::vector<float> column = define(c);
      for (size_t s = 0; s < count; ++s) all[s * stride + c] = column[s];
    }
    return all;
  }

  size_t count, columns, stride;
  std::vector<float> values;
};

}  // namespace

TEST_CASE("sums of streams equal their definition") {
  SampleRandom random(46);
  for (const KernelTable* table : available_kernels()) {
    CAPTURE(std::string(table->name));
    for (size_t count = 1; count <= 8; ++count) {
      for (const size_t columns : kColumnCounts) {
        const Streams streams(random, count, columns);
        const std::vector<float> weights = random.units(count);
        std::vector<float> y(columns + 1, kUntouched), expected;
        for (size_t c = 0; c < columns; ++c) {
          expected.push_back(definition::sum_of_streams(streams.column(c), weights.data()));
        }
        expected.push_back(kUntouched);
        table->collapse_streams(streams.values.data(), streams.stride, weights.data(),
                                static_cast<int32_t>(count), columns, y.data());
        CHECK(first_difference(y, expected) == -1);
      }
    }
  }
}

TEST_CASE("changed streams equal their definition") {
  SampleRandom random(47);
  for (const KernelTable* table : available_kernels()) {
    CAPTURE(std::string(table->name));
    for (size_t count = 1; count <= 8; ++count) {
      for (const size_t columns : kColumnCounts) {
        Streams streams(random, count, columns);
        const std::vector<float> x = random.units(columns), post = random.units(count);
        const std::vector<float> mix = random.units(count * count);
        const std::vector<float> expected = streams.changed([&](size_t c) {
          return definition::changed_streams(streams.column(c), x[c], post.data(), mix.data());
        });
        table->update_streams(x.data(), post.data(), mix.data(), static_cast<int32_t>(count),
                              columns, streams.values.data(), streams.stride);
        CHECK(first_difference(streams.values, expected) == -1);
      }
    }
  }
}

TEST_CASE("streams that get a part of x equal their definition") {
  SampleRandom random(50);
  for (const KernelTable* table : available_kernels()) {
    CAPTURE(std::string(table->name));
    for (size_t count = 1; count <= 8; ++count) {
      for (const size_t columns : kColumnCounts) {
        Streams streams(random, count, columns);
        const std::vector<float> x = random.units(columns), post = random.units(count);
        const std::vector<float> expected = streams.changed([&](size_t c) {
          return definition::injected_streams(streams.column(c), x[c], post.data());
        });
        table->inject_streams(x.data(), post.data(), static_cast<int32_t>(count), columns,
                              streams.values.data(), streams.stride);
        CHECK(first_difference(streams.values, expected) == -1);
      }
    }
  }
}

TEST_CASE("values are opened by the match of key and query as defined, in place or not") {
  SampleRandom random(51);
  for (const KernelTable* table : available_kernels()) {
    CAPTURE(std::string(table->name));
    for (const size_t columns : {1, 15, 16, 17, 100, 128, 129, 300}) {
      for (const float size : {1.0f, 4.0f, 0x1p-12f, 0x1p-40f, 0.0f}) {
        for (const bool is_in_place : {false, true}) {
          std::vector<float> key = random.units(columns), query = random.units(columns);
          for (float& x : key) x *= size;
          const std::vector<float> value = random.units(columns);
          const float opened = definition::match(key, query);
          std::vector<float> output(columns + 1, kUntouched), expected;
          for (const float x : value) expected.push_back(opened * x);
          expected.push_back(kUntouched);
          key.push_back(kUntouched);
          float* const to = is_in_place ? key.data() : output.data();
          table->match_stream(key.data(), query.data(), value.data(), static_cast<int32_t>(columns),
                              to);
          CHECK(first_difference(is_in_place ? key : output, expected) == -1);
        }
      }
    }
  }
}

// g is given: the key times a query that is 1 in one column, of four.
TEST_CASE("matches at the edges of their root") {
  const auto root_of_sixth = static_cast<float>(std::sqrt(1e-6f));
  const std::pair<float, float> kEdges[] = {{0.0f, 0.0f},
                                            {-0.0f, 0.0f},
                                            {0x1p-127f, 0.0f},
                                            {-0x1p-127f, 0.0f},
                                            {1e-30f, root_of_sixth},
                                            {-1e-30f, -root_of_sixth},
                                            {1e-6f, root_of_sixth},
                                            {4.0f, 2.0f},
                                            {-4.0f, -2.0f},
                                            {0x1p100f, 0x1p50f},
                                            {-0x1p100f, -0x1p50f},
                                            {INFINITY, INFINITY},
                                            {-INFINITY, -INFINITY},
                                            {NAN, NAN}};
  for (const KernelTable* table : available_kernels()) {
    CAPTURE(std::string(table->name));
    for (const auto& [g, root] : kEdges) {
      CAPTURE(g);
      const std::vector<float> key = {2 * g, 0.0f, 0.0f, 0.0f}, query = {1.0f, 0.0f, 0.0f, 0.0f};
      const std::vector<float> value = {1.0f, -3.0f, 0.0f, 8.0f};
      std::vector<float> output(4), expected;
      for (const float x : value) expected.push_back(sigmoid_f32(root) * x);
      table->match_stream(key.data(), query.data(), value.data(), 4, output.data());
      CHECK(first_difference(output, expected) == -1);
    }
  }
}

}  // namespace lockstep
