// Kernels of layers that keep a state against their equations, whatever the sizes.
#include <doctest/doctest.h>

#include <cmath>

#include "kernels/definition.h"
#include "kernels/math.h"
#include "kernels/test_data.h"

namespace lockstep {
namespace {

std::vector<float> units(SampleRandom& random, size_t count, float factor = 1) {
  std::vector<float> values = random.units(count);
  for (float& value : values) value *= factor;
  return values;
}

constexpr size_t kCounts[] = {0, 1, 2, 15, 16, 17, 31, 33, 100};

}  // namespace

TEST_CASE("sigmoid in lanes is sigmoid_f32, whatever the count") {
  SampleRandom random(41);
  for (const KernelTable* table : available_kernels()) {
    for (const size_t count : kCounts) {
      std::vector<float> x = units(random, count, 90), expected;
      for (const float value : x) expected.push_back(sigmoid_f32(value));
      table->sigmoid(x.data(), x.data(), count);
      CHECK(first_difference(x, expected) == -1);
    }
  }
}

TEST_CASE("silu in lanes is x * sigmoid_f32(x), whatever the count") {
  SampleRandom random(48);
  for (const KernelTable* table : available_kernels()) {
    for (const size_t count : kCounts) {
      std::vector<float> x = units(random, count, 90), expected;
      for (const float value : x) expected.push_back(value * sigmoid_f32(value));
      x.push_back(kUntouched);
      expected.push_back(kUntouched);
      table->silu(x.data(), count);
      CHECK(first_difference(x, expected) == -1);
    }
  }
}

TEST_CASE("decays equal their definition bit for bit, and are accurate") {
  SampleRandom random(42);
  for (const KernelTable* table : available_kernels()) {
    CAPTURE(std::string(table->name));
    for (const size_t count : kCounts) {
      std::vector<float> x = units(random, count, 30), expected;
      const std::vector<float> bias = units(random, count, 5);
      std::vector<float> rate = units(random, count, 8);
      for (float& value : rate) value = std::fabs(value);
      for (size_t i = 0; i < count; ++i) {
        expected.push_back(definition::decay(x[i], bias[i], rate[i]));
        const double sum = double{x[i]} + double{bias[i]};
        const double exponent = double{rate[i]} * std::log1p(std::exp(sum));
        const double exact = std::exp(-exponent);
        CHECK(std::fabs(double{expected[i]} - exact) <= exact * (4 + exponent) * 0x1p-22 + 1e-30);
      }
      table->decay(bias.data(), rate.data(), x.data(), count);
      CHECK(first_difference(x, expected) == -1);
    }
  }
}

TEST_CASE("decays with a least logarithm equal their definition bit for bit, and stay above it") {
  SampleRandom random(45);
  for (const KernelTable* table : available_kernels()) {
    CAPTURE(std::string(table->name));
    for (const float least : {-0.25f, -5.0f, -30.0f}) {
      for (const size_t count : kCounts) {
        std::vector<float> x = units(random, count, 30), expected;
        const std::vector<float> bias = units(random, count, 5), rate = units(random, count, 8);
        for (size_t i = 0; i < count; ++i) {
          expected.push_back(definition::bounded_decay(x[i], bias[i], rate[i], least));
          const double sum = double{rate[i]} * (double{x[i]} + double{bias[i]});
          const double exact = std::exp(double{least} / (1 + std::exp(-sum)));
          CHECK(std::fabs(double{expected[i]} - exact) <= exact * (4 - least) * 0x1p-20);
          CHECK(double{expected[i]} >= std::exp(double{least}) * (1 - 0x1p-20));
        }
        x.push_back(kUntouched);
        expected.push_back(kUntouched);
        table->bounded_decay(bias.data(), rate.data(), least, x.data(), count);
        CHECK(first_difference(x, expected) == -1);
      }
    }
  }
}

TEST_CASE("convolutions equal their definition, with and without a past, in place or not") {
  SampleRandom random(43);
  for (const KernelTable* table : available_kernels()) {
    CAPTURE(std::string(table->name));
    for (const size_t taps : {1, 2, 4, 8}) {
      for (const size_t channels : {1, 15, 16, 40, 70}) {
        const size_t stride = channels + 3;
        const std::vector<float> weights = units(random, taps * stride);
        std::vector<float> past = units(random, (taps - 1) * stride);
        for (int token = 0; token < 3; ++token) {
          const bool begins = token == 0, is_in_place = token == 2;
          std::vector<float> x = units(random, channels, 4), after = past;
          std::vector<float> expected_after = past, expected;
          for (size_t c = 0; c < channels; ++c) {
            std::vector<float> inputs, of_channel;
            for (size_t tap = 0; tap < taps; ++tap) {
              const bool is_new = tap + 1 == taps;
              inputs.push_back(is_new ? x[c] : begins ? 0.0f : past[tap * stride + c]);
              of_channel.push_back(weights[tap * stride + c]);
              if (tap > 0) expected_after[(tap - 1) * stride + c] = inputs.back();
            }
            expected.push_back(definition::convolution(inputs, of_channel));
          }
          table->convolve({.x = x.data(),
                           .weights = weights.data(),
                           .before = begins        ? nullptr
                                     : is_in_place ? after.data()
                                                   : past.data(),
                           .after = after.data(),
                           .y = x.data(),
                           .taps = static_cast<int32_t>(taps),
                           .channels = static_cast<int32_t>(channels),
                           .stride = stride});
          CHECK(first_difference(x, expected) == -1);
          CHECK(first_difference(after, expected_after) == -1);
          past = after;
        }
      }
    }
  }
}

// A state holds the inputs of all tokens between the taps.
TEST_CASE("convolutions with taps some tokens apart equal their definition") {
  SampleRandom random(49);
  for (const KernelTable* table : available_kernels()) {
    CAPTURE(std::string(table->name));
    for (const auto& [taps, dilation] : {std::pair<size_t, size_t>{1, 3}, {2, 3}, {4, 2}, {4, 3}}) {
      for (const size_t channels : {1, 16, 41}) {
        constexpr size_t kTokens = 15;
        const size_t past = (taps - 1) * dilation;
        const std::vector<float> weights = units(random, taps * channels);
        std::vector<std::vector<float>> inputs(past, std::vector<float>(channels, 0.0f));
        std::vector<float> state(past * channels, kUntouched);
        for (size_t token = 0; token < kTokens; ++token) {
          inputs.push_back(units(random, channels, 4));
          std::vector<float> y(channels), expected, expected_state;
          for (size_t c = 0; c < channels; ++c) {
            std::vector<float> of_taps, of_channel;
            for (size_t tap = 0; tap < taps; ++tap) {
              of_taps.push_back(inputs[token + tap * dilation][c]);
              of_channel.push_back(weights[tap * channels + c]);
            }
            expected.push_back(definition::convolution(of_taps, of_channel));
          }
          for (size_t row = 1; row <= past; ++row) {
            const std::vector<float>& kept = inputs[token + row];
            expected_state.insert(expected_state.end(), kept.begin(), kept.end());
          }
          table->convolve({.x = inputs.back().data(),
                           .weights = weights.data(),
                           .before = token == 0 ? nullptr : state.data(),
                           .after = state.data(),
                           .y = y.data(),
                           .taps = static_cast<int32_t>(taps),
                           .channels = static_cast<int32_t>(channels),
                           .stride = channels,
                           .dilation = static_cast<int32_t>(dilation)});
          CHECK(first_difference(y, expected) == -1);
          CHECK(first_difference(state, expected_state) == -1);
        }
      }
    }
  }
}

TEST_CASE("the delta rule equals its definition, from no state on, in place or not") {
  SampleRandom random(44);
  for (const KernelTable* table : available_kernels()) {
    CAPTURE(std::string(table->name));
    for (const size_t rows : {1, 16, 33}) {
      for (const size_t columns : {1, 16, 17, 64, 100, 128}) {
        for (const bool has_decays : {false, true}) {
          std::vector<float> before, expected(rows * columns, 0.0f);
          for (int token = 0; token < 4; ++token) {
            const std::vector<float> query = units(random, rows), key = units(random, rows);
            const std::vector<float> value = units(random, columns);
            std::vector<float> decays = units(random, has_decays ? rows : 1);
            for (float& decay : decays) decay = std::fabs(decay);
            const float rate = std::fabs(random.unit());
            const std::vector<float> wanted =
                definition::delta_rule(expected, query, key, value, decays, rate);
            std::vector<float> output(columns), after(rows * columns, kUntouched);
            if (token % 2 == 1) after = before;
            table->delta_rule({.before = token == 0       ? nullptr
                                         : token % 2 == 1 ? after.data()
                                                          : before.data(),
                               .after = after.data(),
                               .query = query.data(),
                               .key = key.data(),
                               .value = value.data(),
                               .decay = decays.data(),
                               .decay_stride = has_decays ? 1 : 0,
                               .rate = rate,
                               .key_dim = static_cast<int32_t>(rows),
                               .value_dim = static_cast<int32_t>(columns),
                               .output = output.data()});
            CHECK(first_difference(output, wanted) == -1);
            CHECK(first_difference(after, expected) == -1);
            before = after;
          }
        }
      }
    }
  }
}

}  // namespace lockstep
