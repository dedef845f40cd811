// Kernels of several residual streams against their equations, whatever the sizes.
#include <doctest/doctest.h>

#include "kernels/definition.h"
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
        std::vector<float> expected = streams.values;
        for (size_t c = 0; c < columns; ++c) {
          const std::vector<float> changed =
              definition::changed_streams(streams.column(c), x[c], post.data(), mix.data());
          for (size_t s = 0; s < count; ++s) expected[s * streams.stride + c] = changed[s];
        }
        table->update_streams(x.data(), post.data(), mix.data(), static_cast<int32_t>(count),
                              columns, streams.values.data(), streams.stride);
        CHECK(first_difference(streams.values, expected) == -1);
      }
    }
  }
}

}  // namespace lockstep
