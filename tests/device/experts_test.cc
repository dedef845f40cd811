// Experts with biases and a clamped activation, checked against their definition.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "device/device_values.h"
#include "kernels/isa.h"

using namespace lockstep;

namespace {

constexpr int kExperts = 3, kTokens = 2, kChosen = 2, kHidden = 20, kFfn = 19;
constexpr float kLimit = 1.5f;

struct Layer {
  std::vector<float> gate, up, gate_bias, up_bias, down_bias;  // of all experts
  std::vector<float> input, hidden;
  std::vector<int32_t> chosen{0, 2, 1, 2};
  std::vector<float> weights{0.25f, 0.75f, 0.5f, 0.5f};
};

Layer make_layer() {
  Numbers numbers;
  Layer layer;
  for (auto* matrix : {&layer.gate, &layer.up}) *matrix = numbers.take(kExperts * kFfn * kHidden);
  for (auto* bias : {&layer.gate_bias, &layer.up_bias}) *bias = numbers.take(kExperts * kFfn);
  layer.down_bias = numbers.take(kExperts * kHidden);
  layer.input = numbers.take(kTokens * kHidden);
  layer.hidden = numbers.take(kTokens * kHidden);
  return layer;
}

std::vector<MatrixId> pack_all(Device& device, const std::vector<float>& matrices) {
  std::vector<MatrixId> ids;
  for (int expert = 0; expert < kExperts; ++expert) {
    const auto of_expert =
        std::span<const float>(matrices).subspan(expert * kFfn * kHidden, kFfn * kHidden);
    auto id = device.pack({.stored = {.rows = kFfn,
                                      .columns = kHidden,
                                      .codes = std::as_bytes(of_expert),
                                      .row_bytes = kHidden * 4},
                           .rows = kFfn,
                           .columns = kHidden,
                           .steps = {{kHidden, 0, 1}}});
    REQUIRE(id.ok());
    ids.push_back(id.value());
  }
  return ids;
}

struct Computed {
  std::vector<float> activations;  // (tokens, chosen, ffn)
  std::vector<float> hidden;       // with the bias of the experts' output
};

Computed computed_layer(const char* kind, int threads, const KernelTable* kernels,
                        const Layer& layer) {
  auto opened = open_device({.kind = kind, .threads = threads, .kernels = kernels});
  REQUIRE(opened.ok());
  Device& device = *opened.value();
  const ExpertMatrices matrices{pack_all(device, layer.gate), pack_all(device, layer.up), {}};
  const Slice chosen = room(device, layer.chosen.size());
  device.write_ints(chosen, layer.chosen);
  const Slice weights = put(device, layer.weights);
  const size_t count = size_t{kTokens} * kChosen * kFfn;
  const Slice output = room(device, count, Access::kHost);
  const Slice hidden = put(device, layer.hidden, Access::kHost);
  device.queue(ExpertsUp{.matrices = &matrices,
                         .chosen = chosen,
                         .weights = weights,
                         .tokens = kTokens,
                         .chosen_count = kChosen,
                         .input = put(device, layer.input),
                         .scratch = room(device, 2 * count),
                         .output = output,
                         .activation = Activation::kClampedSwiglu,
                         .limit = kLimit,
                         .has_bias = true,
                         .gate_bias = put(device, layer.gate_bias),
                         .up_bias = put(device, layer.up_bias)});
  device.queue(AddExpertBias{.bias = put(device, layer.down_bias),
                             .chosen = chosen,
                             .weights = weights,
                             .tokens = kTokens,
                             .experts = kExperts,
                             .chosen_count = kChosen,
                             .columns = kHidden,
                             .x = hidden});
  REQUIRE(device.wait().ok());
  const auto up = device.host(output.buffer), sum = device.host(hidden.buffer);
  return {{up.begin(), up.end()}, {sum.begin(), sum.end()}};
}

double product(const std::vector<float>& matrices, const std::vector<float>& biases, int expert,
               int row, const float* x) {
  double sum = biases[static_cast<size_t>(expert * kFfn + row)];
  for (int i = 0; i < kHidden; ++i) {
    sum += double{matrices[static_cast<size_t>((expert * kFfn + row) * kHidden + i)]} * x[i];
  }
  return sum;
}

}  // namespace

TEST_CASE("experts with biases clamp, gate and weigh as defined") {
  const Layer layer = make_layer();
  const Computed got = computed_layer("cpu", 1, available_kernels().back(), layer);
  int clamped = 0;
  for (int slot = 0; slot < kTokens * kChosen; ++slot) {
    const int expert = layer.chosen[static_cast<size_t>(slot)];
    const float* x = layer.input.data() + slot / kChosen * kHidden;
    for (int row = 0; row < kFfn; ++row) {
      const double raw = product(layer.gate, layer.gate_bias, expert, row, x);
      const double gate = std::min(raw, double{kLimit});
      const double up = std::clamp(product(layer.up, layer.up_bias, expert, row, x),
                                   -double{kLimit}, double{kLimit});
      const double expected = (up + 1) * gate / (1 + std::exp(-1.702 * gate)) *
                              double{layer.weights[static_cast<size_t>(slot)]};
      CHECK(got.activations[static_cast<size_t>(slot * kFfn + row)] ==
            doctest::Approx(expected).epsilon(1e-4));
      clamped += raw > kLimit ? 1 : 0;
    }
  }
  CHECK(clamped > 0);
}

TEST_CASE("the biases of the chosen experts' outputs are added by weight") {
  const Layer layer = make_layer();
  const Computed got = computed_layer("cpu", 1, available_kernels().back(), layer);
  for (int token = 0; token < kTokens; ++token) {
    for (int column = 0; column < kHidden; ++column) {
      const auto at = static_cast<size_t>(token * kHidden + column);
      double expected = layer.hidden[at];
      for (int i = 0; i < kChosen; ++i) {
        const auto slot = static_cast<size_t>(token * kChosen + i);
        expected += double{layer.weights[slot]} *
                    layer.down_bias[static_cast<size_t>(layer.chosen[slot] * kHidden + column)];
      }
      CHECK(got.hidden[at] == doctest::Approx(expected).epsilon(1e-5));
    }
  }
}

TEST_CASE("experts with biases give the same bits on every device, team and instruction set") {
  const Layer layer = make_layer();
  const Computed expected = computed_layer("cpu", 1, available_kernels().front(), layer);
  for (const KernelTable* kernels : available_kernels()) {
    for (const char* kind : {"cpu", "delayed"}) {
      const Computed got = computed_layer(kind, kind[0] == 'c' ? 3 : 1, kernels, layer);
      CHECK(got.activations == expected.activations);
      CHECK(got.hidden == expected.hidden);
    }
  }
}

TEST_CASE("gate and up projections of different formats give the same result in any batch") {
  constexpr int kMany = 300, kEach = 8;
  auto opened = open_device({.kernels = available_kernels().back()});
  REQUIRE(opened.ok());
  Device& device = *opened.value();
  const MatrixId gate = packed(device, Quantised().source());
  const MatrixId up = packed(device, Plain().source());
  const ExpertMatrices matrices{std::vector(kEach, gate), std::vector(kEach, up), {}};
  const Slice input = put(device, Numbers().take(kMany * Quantised::kColumns));
  const Slice chosen = room(device, kMany * kEach), scratch = room(device, 2 * kMany * kEach * 16);
  std::vector<int32_t> all;
  for (int i = 0; i < kMany * kEach; ++i) all.push_back(i % kEach);
  device.write_ints(chosen, all);
  const Slice weights = put(device, std::vector<float>(kMany * kEach, 0.5f));
  const size_t row = size_t{kEach} * Quantised::kRows;
  const Slice together = room(device, kMany * row, Access::kHost);
  const Slice alone = room(device, kMany * row, Access::kHost);
  ExpertsUp op{.matrices = &matrices,
               .chosen = chosen,
               .weights = weights,
               .tokens = kMany,
               .chosen_count = kEach,
               .input = input,
               .scratch = scratch,
               .output = together};
  device.queue(op);
  for (size_t token = 0; token < kMany; ++token) {
    op.tokens = 1;
    op.input.offset = token * Quantised::kColumns;
    op.output = {alone.buffer, token * row};
    device.queue(op);
  }
  REQUIRE(device.wait().ok());
  const auto a = device.host(together.buffer), b = device.host(alone.buffer);
  CHECK(std::equal(a.begin(), a.end(), b.begin(), b.end()));
}

TEST_CASE("the shared expert's part is the same alone and together with the chosen ones") {
  constexpr int kMany = 5;
  for (const char* kind : {"cpu", "delayed"}) {
    auto opened = open_device({.kind = kind, .threads = 2, .kernels = available_kernels().back()});
    REQUIRE(opened.ok());
    Device& device = *opened.value();
    const ExpertMatrices matrices{
        {packed(device, Quantised().source())}, {packed(device, Quantised().source())}, {}};
    const size_t count = kMany * Quantised::kRows;
    const Slice chosen = room(device, kMany), scratch = room(device, 2 * count);
    device.write_ints(chosen, std::vector<int32_t>(kMany, 0));
    GatedUp shared{.gate = packed(device, Plain().source()),
                   .up = packed(device, Quantised().source()),
                   .input = put(device, Numbers().take(kMany * Quantised::kColumns)),
                   .tokens = kMany,
                   .scratch = room(device, count),
                   .output = room(device, count, Access::kHost)};
    device.queue(ExpertsUp{.matrices = &matrices,
                           .chosen = chosen,
                           .weights = put(device, std::vector<float>(kMany, 1)),
                           .tokens = kMany,
                           .chosen_count = 1,
                           .input = shared.input,
                           .scratch = scratch,
                           .output = room(device, count),
                           .has_shared = true,
                           .shared = shared});
    const Slice together = shared.output;
    shared.output = room(device, count, Access::kHost);
    device.queue(shared);
    REQUIRE(device.wait().ok());
    const auto a = device.host(together.buffer).first(count);
    const auto b = device.host(shared.output.buffer).first(count);
    CHECK(std::equal(a.begin(), a.end(), b.begin(), b.end()));
    CHECK(std::any_of(b.begin(), b.end(), [](float value) { return value != 0; }));
  }
}

TEST_CASE("the down product of many tokens is what each token gets alone") {
  constexpr int kMany = 600, kOf = 5, kEach = 2;  // more tokens than one round
  constexpr size_t kIn = Quantised::kColumns, kOut = Quantised::kRows;
  for (const bool is_plain : {false, true}) {
    auto opened = open_device({.threads = 2, .kernels = available_kernels().back()});
    REQUIRE(opened.ok());
    Device& device = *opened.value();
    ExpertMatrices matrices;
    for (int expert = 0; expert < kOf; ++expert) {
      Quantised quantised;
      Plain plain;
      for (auto& code : quantised.codes) code ^= static_cast<std::byte>(expert * 5);
      for (float& value : plain.values) value *= static_cast<float>(expert + 1);
      MatrixSource source = is_plain ? plain.source() : quantised.source();
      source.inputs_per_token = kEach;
      matrices.down.push_back(packed(device, source));
    }
    std::vector<int32_t> all;  // ascending for each token
    for (int token = 0; token < kMany; ++token) {
      const int first = token * 7 / 3 % 4;
      all.push_back(first);
      all.push_back(first + 1);
    }
    const Slice chosen = room(device, all.size());
    device.write_ints(chosen, all);
    Numbers numbers;
    ExpertsDown op{.matrices = &matrices,
                   .chosen = chosen,
                   .tokens = kMany,
                   .chosen_count = kEach,
                   .input = put(device, numbers.take(kMany * kEach * kIn)),
                   .has_shared = true,
                   .shared = packed(device, Plain().source()),
                   .shared_input = put(device, numbers.take(kMany * kIn)),
                   .output = room(device, kMany * kOut, Access::kHost)};
    const Slice together = op.output;
    const Slice alone = room(device, kMany * kOut, Access::kHost);
    device.queue(op);
    for (size_t token = 0; token < kMany; ++token) {
      op.tokens = 1;
      op.chosen = {chosen.buffer, token * kEach};
      op.input.offset = token * kEach * kIn;
      op.shared_input.offset = token * kIn;
      op.output = {alone.buffer, token * kOut};
      device.queue(op);
    }
    REQUIRE(device.wait().ok());
    const auto a = device.host(together.buffer), b = device.host(alone.buffer);
    CHECK(std::equal(a.begin(), a.end(), b.begin(), b.end()));
    CHECK(std::any_of(b.begin(), b.end(), [](float value) { return value != 0; }));
  }
}

TEST_CASE("a matrix whose input form differs from the others' is refused") {
  auto opened = open_device({.kernels = available_kernels().back()});
  REQUIRE(opened.ok());
  Device& device = *opened.value();
  const Quantised quantised;
  const Plain plain;
  const MatrixId first = packed(device, quantised.source());
  MatrixSource like = quantised.source();
  like.input_like = first;
  CHECK(device.pack(like).ok());
  std::vector<MatrixSource> others = {plain.source(), quantised.source(), quantised.source()};
  others[1].keeps_float_input = true;
  others[2].stored.group = 64;  // the same blocks, but pieces of two
  for (MatrixSource& other : others) {
    other.input_like = first;
    const auto refused = device.pack(other);
    REQUIRE(!refused.ok());
    CHECK(refused.error().code == ErrorCode::kUnsupported);
  }
}
