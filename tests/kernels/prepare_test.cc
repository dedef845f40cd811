// Activations in blocks, compared with a plain reference.
#include <doctest/doctest.h>

#include "kernels/test_data.h"
#include "support/flushing.h"

namespace lockstep {
namespace {

constexpr BlockColumns kBlocks[] = {{0, 32}, {32, 1}, {33, 16}, {49, 17}, {66, 31}, {97, 32}};
constexpr int kColumns = 129;
constexpr size_t kBlockCount = std::size(kBlocks);

InputBlock8 integer_reference(const float* x, int count) {
  float most = 0.0f;
  bool is_finite = true;
  for (int i = 0; i < count; ++i) {
    is_finite = is_finite && std::isfinite(x[i]);
    most = std::fmax(most, std::fabs(x[i]));
  }
  InputBlock8 block = {};
  if (!is_finite) {
    block.scale = INFINITY;  // or a NaN
    return block;
  }
  if (most < 0x1p-100f) return block;
  block.scale = most / 127.0f;
  for (int i = 0; i < count; ++i) {
    block.codes[i] = static_cast<int8_t>(std::nearbyint(x[i] * (127.0f / most)));
    block.half_sums[i / 16] += block.codes[i];
  }
  block.sum = block.half_sums[0] + block.half_sums[1];
  return block;
}

// The fixed tree over sixteen lanes.
float tree_sum(const float* x) {
  float lanes[16];
  std::memcpy(lanes, x, sizeof(lanes));
  for (int half = 8; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  }
  return lanes[0];
}

std::vector<std::vector<float>> inputs() {
  SampleRandom random(3);
  std::vector<std::vector<float>> all;
  for (int round = 0; round < 20; ++round) all.push_back(random.units(kColumns));
  std::vector<float> nasty(kColumns);
  for (float& value : nasty) value = draw(random, SampleKind::kNasty);
  all.push_back(nasty);
  std::vector<float> ties(kColumns);  // 127 makes the factor 1
  for (size_t i = 0; i < ties.size(); ++i) ties[i] = static_cast<float>(i % 100) - 49.5f;
  for (const BlockColumns& block : kBlocks) ties[static_cast<size_t>(block.begin)] = -127.0f;
  all.push_back(ties);
  all.push_back(std::vector<float>(kColumns, 0.0f));
  all.push_back(std::vector<float>(kColumns, -0.0f));
  all.push_back(std::vector<float>(kColumns, 0x1p-140f));
  all.push_back(std::vector<float>(kColumns, -0x1p-100f));
  all.push_back(std::vector<float>(kColumns, 0x1.fffffep-101f));
  all.push_back(std::vector<float>(kColumns, 0x1.fffffep127f));
  for (float special : {INFINITY, -INFINITY, NAN}) {
    all.push_back(random.units(kColumns));
    all.back()[5] = all.back()[60] = special;
  }
  return all;
}

}  // namespace

TEST_CASE("activations become the nearest integers of their block's scale") {
  for (const KernelTable* table : available_kernels()) {
    CAPTURE(std::string(table->name));
    for (const std::vector<float>& input : inputs()) {
      std::vector<InputBlock8> output(2 * kBlockCount);
      std::memset(output.data(), 0x55, output.size() * sizeof(InputBlock8));
      table->prepare_integers({input.data(), 0, kBlocks, kBlockCount, 1, 2, output.data()});
      CHECK(output[0].sum == 0x55555555);  // token 0 belongs to another thread
      for (size_t i = 0; i < kBlockCount; ++i) {
        const InputBlock8 expected =
            integer_reference(input.data() + kBlocks[i].begin, kBlocks[i].count);
        const InputBlock8& got = output[kBlockCount + i];
        REQUIRE(std::memcmp(got.codes, expected.codes, sizeof(got.codes)) == 0);
        if (std::isfinite(expected.scale)) {
          REQUIRE(got.scale == expected.scale);
        } else {
          REQUIRE(!std::isfinite(got.scale));
        }
        REQUIRE(got.sum == expected.sum);
        REQUIRE(got.half_sums[0] == expected.half_sums[0]);
        REQUIRE(got.half_sums[1] == expected.half_sums[1]);
      }
    }
  }
}

TEST_CASE("blocks are the same where subnormals are flushed") {
  SampleRandom random(5);
  for (const KernelTable* table : available_kernels()) {
    CAPTURE(std::string(table->name));
    for (int exponent = -140; exponent <= 120; ++exponent) {
      std::vector<float> input = random.units(kColumns);
      for (float& value : input) value = std::ldexp(value, exponent - random.below(40));
      std::vector<InputBlock8> output(kBlockCount), flushed(kBlockCount);
      PrepareArgs args = {input.data(), 0, kBlocks, kBlockCount, 0, 1, output.data()};
      table->prepare_integers(args);
      args.output = flushed.data();
      {
        const Flushing flushing;
        table->prepare_integers(args);
      }
      REQUIRE(std::memcmp(output.data(), flushed.data(), kBlockCount * sizeof(InputBlock8)) == 0);
    }
  }
}

TEST_CASE("a NaN takes precedence over an infinity in the scale of a block") {
  std::vector<float> input(kColumns, 1.0f);
  input[1] = INFINITY;
  input[20] = NAN;
  input[100] = -INFINITY;
  for (const KernelTable* table : available_kernels()) {
    std::vector<InputBlock8> output(kBlockCount);
    table->prepare_integers({input.data(), 0, kBlocks, kBlockCount, 0, 1, output.data()});
    CHECK(std::isnan(output[0].scale));
    CHECK(std::isinf(output[5].scale));
    CHECK(output[1].scale == 1.0f / 127.0f);
  }
}

TEST_CASE("activations as floats are padded with zeros and added in the fixed tree") {
  for (const KernelTable* table : available_kernels()) {
    CAPTURE(std::string(table->name));
    for (const std::vector<float>& input : inputs()) {
      std::vector<InputBlockF> output(kBlockCount);
      table->prepare_floats({input.data(), 0, kBlocks, kBlockCount, 0, 1, output.data()});
      for (size_t i = 0; i < kBlockCount; ++i) {
        std::vector<float> values(kBlockColumns, 0.0f);
        for (int column = 0; column < kBlocks[i].count; ++column) {
          values[static_cast<size_t>(column)] =
              input[static_cast<size_t>(kBlocks[i].begin + column)];
        }
        const float low = tree_sum(values.data()), high = tree_sum(values.data() + 16);
        const std::vector<float> sums = {low, high, low + high};
        const InputBlockF& got = output[i];
        CHECK(first_difference(std::vector<float>(got.values, got.values + kBlockColumns),
                               values) == -1);
        CHECK(first_difference({got.half_sums[0], got.half_sums[1], got.sum}, sums) == -1);
      }
    }
  }
}

}  // namespace lockstep
