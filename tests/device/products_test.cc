// Products of several matrices with one input, and gate and up joined, against one matrix at a
// time.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <utility>

#include "device/device_values.h"
#include "kernels/isa.h"

using namespace lockstep;

namespace {

constexpr int kManyTokens = 300;  // more than are prepared in one round
constexpr int kMatrixRows = Quantised::kRows, kMatrixColumns = Quantised::kColumns;

std::unique_ptr<Device> opened(const char* kind, int threads) {
  auto device =
      open_device({.kind = kind, .threads = threads, .kernels = available_kernels().back()});
  REQUIRE(device.ok());
  return std::move(device.value());
}

std::vector<float> host_values(Device& device, Slice slice) {
  const auto values = device.host(slice.buffer).first(size_t{kManyTokens} * kMatrixRows);
  return {values.begin(), values.end()};
}

Slice room_for_products(Device& device) {
  return room(device, size_t{kManyTokens} * kMatrixRows, Access::kHost);
}

// Three forms of input: integers, floats in blocks, plain floats.
struct ThreeForms {
  Quantised quantised;
  Plain plain;

  std::vector<MatrixId> pack(Device& device) const {
    MatrixSource floats = quantised.source();
    floats.keeps_float_input = true;
    return {packed(device, quantised.source()), packed(device, floats),
            packed(device, plain.source())};
  }
};

}  // namespace

TEST_CASE("matrices that share an input give what each gives alone, whatever their forms") {
  const ThreeForms forms;
  for (const auto& [kind, threads] : {std::pair{"cpu", 1}, {"cpu", 3}, {"delayed", 2}}) {
    CAPTURE(kind);
    const auto device = opened(kind, threads);
    const std::vector<MatrixId> matrices = forms.pack(*device);
    const Slice x = put(*device, Numbers().take(kManyTokens * kMatrixColumns));
    Matmul all{x, kManyTokens, {}, 3}, token{x, 1, {}, 3};
    std::vector<Slice> alone;
    for (size_t i = 0; i < matrices.size(); ++i) {
      all.products[i] = {matrices[i], room_for_products(*device)};
      token.products[i] = {matrices[i], room_for_products(*device)};
      alone.push_back(room_for_products(*device));
      device->queue(Matmul{x, kManyTokens, {{matrices[i], alone[i]}}});
    }
    device->queue(all);
    for (size_t i = 0; i < kManyTokens; ++i) {
      token.input.offset = i * kMatrixColumns;
      for (Matmul::Product& product : token.products) product.output.offset = i * kMatrixRows;
      device->queue(token);
    }
    REQUIRE(device->wait().ok());
    for (size_t i = 0; i < matrices.size(); ++i) {
      const std::vector<float> expected = host_values(*device, alone[i]);
      CHECK(host_values(*device, all.products[i].output) == expected);
      CHECK(host_values(*device, token.products[i].output) == expected);
    }
  }
}

TEST_CASE("a matrix without rows among others is skipped") {
  const auto device = opened("cpu", 2);
  const Quantised quantised;
  MatrixSource none = quantised.source();
  none.rows = 0;
  const MatrixId whole = packed(*device, quantised.source()), empty = packed(*device, none);
  const Slice x = put(*device, Numbers().take(kManyTokens * kMatrixColumns));
  const Slice a = room_for_products(*device), b = room_for_products(*device),
              c = room_for_products(*device), alone = room_for_products(*device);
  device->queue(Matmul{x, kManyTokens, {{whole, alone}}});
  device->queue(Matmul{x, kManyTokens, {{empty, a}, {whole, b}, {empty, c}}, 3});
  device->queue(Matmul{x, kManyTokens, {{empty, a}}});
  REQUIRE(device->wait().ok());
  CHECK(host_values(*device, b) == host_values(*device, alone));
}

TEST_CASE("gate and up joined have the bits of both products and their activation") {
  const ThreeForms forms;
  for (const auto& [kind, threads] : {std::pair{"cpu", 1}, {"cpu", 3}, {"delayed", 2}}) {
    CAPTURE(kind);
    const auto device = opened(kind, threads);
    const std::vector<MatrixId> matrices = forms.pack(*device);
    const Slice x = put(*device, Numbers().take(kManyTokens * kMatrixColumns));
    const Slice gate = room_for_products(*device), up = room_for_products(*device),
                joined = room_for_products(*device), scratch = room_for_products(*device);
    device->queue(Matmul{x, kManyTokens, {{matrices[0], gate}, {matrices[2], up}}, 2});
    device->queue(GatedUp{matrices[0], matrices[2], x, kManyTokens, scratch, joined});
    REQUIRE(device->wait().ok());
    std::vector<float> expected = host_values(*device, gate);
    available_kernels().front()->silu_mul(expected.data(), host_values(*device, up).data(),
                                          expected.data(), expected.size());
    CHECK(host_values(*device, joined) == expected);
  }
}

TEST_CASE("gelu of the gate times up is as near to its formula as floats allow") {
  const ThreeForms forms;
  const auto device = opened("cpu", 2);
  const std::vector<MatrixId> matrices = forms.pack(*device);
  const Slice x = put(*device, Numbers().take(kManyTokens * kMatrixColumns));
  const Slice gate = room_for_products(*device), up = room_for_products(*device),
              joined = room_for_products(*device), scratch = room_for_products(*device);
  device->queue(Matmul{x, kManyTokens, {{matrices[0], gate}, {matrices[2], up}}, 2});
  device->queue(
      GatedUp{matrices[0], matrices[2], x, kManyTokens, scratch, joined, Activation::kGeluMul});
  REQUIRE(device->wait().ok());
  const auto gates = host_values(*device, gate), ups = host_values(*device, up),
             values = host_values(*device, joined);
  for (size_t i = 0; i < values.size(); ++i) {
    const double g = gates[i];
    const double inner = std::sqrt(2 / std::numbers::pi) * (g + 0.044715 * g * g * g);
    const double exact = 0.5 * g * (1 + std::tanh(inner)) * double{ups[i]};
    REQUIRE(std::fabs(double{values[i]} - exact) <= 2e-6 * std::fabs(exact) + 1e-6);
  }
}

TEST_CASE("a capped number is as near to its formula as floats allow, on any number of threads") {
  std::vector<float> numbers{0.0f, -0.0f, 1e-30f, 0.004f, -0.004f, 1.0f, 1e30f, -1e30f};
  for (int i = 0; i < 700; ++i) numbers.push_back(static_cast<float>(i * i % 997 - 500) * 0.3f);
  std::vector<std::vector<float>> answers;
  for (const int threads : {1, 3}) {
    const auto device = opened("cpu", threads);
    const Slice x = put(*device, numbers, Access::kHost);
    device->queue(Cap{x, numbers.size(), 30.0f});
    REQUIRE(device->wait().ok());
    const auto capped = device->host(x.buffer).first(numbers.size());
    answers.emplace_back(capped.begin(), capped.end());
  }
  CHECK(answers[0] == answers[1]);
  for (size_t i = 0; i < numbers.size(); ++i) {
    const double exact = 30 * std::tanh(double{numbers[i]} / 30);
    CHECK(std::fabs(double{answers[0][i]} - exact) <= 1e-5 + 1e-6 * std::fabs(exact));
  }
}
