// Products of several matrices with one input, and gate and up joined, against one matrix at a
// time.
#include <algorithm>
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
