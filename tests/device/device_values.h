// Values, buffers and small matrices for tests of devices.
#pragma once

#include <doctest/doctest.h>

#include <random>
#include <span>
#include <vector>

#include "device/device.h"

namespace lockstep {

class Numbers {
 public:
  std::vector<float> take(int count) {
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) value = normal_(random_);
    return values;
  }

 private:
  std::mt19937 random_{11};
  std::normal_distribution<float> normal_;
};

inline Slice room(Device& device, size_t elements, Access access = Access::kDevice) {
  auto buffer = device.allocate(elements * 4, access);
  REQUIRE(buffer.ok());
  return {buffer.value(), 0};
}

inline Slice put(Device& device, const std::vector<float>& values,
                 Access access = Access::kDevice) {
  const Slice slice = room(device, values.size(), access);
  device.write(slice, std::as_bytes(std::span<const float>(values)));
  return slice;
}

// Weights of 4 bits in MLX's form.
struct Quantised {
  static constexpr int kBits = 4, kGroup = 32, kRows = 16, kColumns = 64;
  std::vector<std::byte> codes = std::vector<std::byte>(kRows * kColumns * kBits / 8);
  std::vector<float> scales = std::vector<float>(kRows * kColumns / kGroup, 0.25f);
  std::vector<float> biases = std::vector<float>(scales.size(), -2.0f);

  Quantised() {
    for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::byte>(i * 37);
  }
  MatrixSource source() const {
    return {.stored = {.format = StoredFormat::kAffine,
                       .rows = kRows,
                       .columns = kColumns,
                       .codes = codes,
                       .row_bytes = kColumns * kBits / 8,
                       .bits = kBits,
                       .group = kGroup,
                       .scales = std::as_bytes(std::span(scales)),
                       .biases = std::as_bytes(std::span(biases))},
            .rows = kRows,
            .columns = kColumns,
            .steps = {{kColumns, 0, 1}}};
  }
};

struct Plain {
  std::vector<float> values = Numbers().take(Quantised::kRows * Quantised::kColumns);

  MatrixSource source() const {
    return {.stored = {.rows = Quantised::kRows,
                       .columns = Quantised::kColumns,
                       .codes = std::as_bytes(std::span(values)),
                       .row_bytes = Quantised::kColumns * 4},
            .rows = Quantised::kRows,
            .columns = Quantised::kColumns,
            .steps = {{Quantised::kColumns, 0, 1}}};
  }
};

inline MatrixId packed(Device& device, const MatrixSource& source) {
  const auto id = device.pack(source);
  REQUIRE(id.ok());
  return id.value();
}

}  // namespace lockstep
