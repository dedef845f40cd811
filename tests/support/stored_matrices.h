// Random matrices of every stored format.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "tensor/stored_matrix.h"

namespace lockstep::testing {

// One stored format with its options.
struct FormatCase {
  std::string name;
  StoredFormat format = StoredFormat::kPlain;
  DType scale_type = DType::kF32;
  int bits = 0;
  int group = 0;
  int row_group = 1;
  bool has_zeros = false;
  int zero_bias = 0;
  bool has_act_order = false;
  float factor = 1;
  uint32_t gguf_type = 0;
};

struct GgufShape {
  uint32_t type;
  const char* name;
  int columns;
  int bytes;
  int halves[2];  // offsets of f16 numbers; -1: none
};
inline constexpr GgufShape kGgufShapes[] = {
    {0, "F32", 1, 4, {-1, -1}},        {1, "F16", 1, 2, {0, -1}},
    {30, "BF16", 1, 2, {-1, -1}},      {2, "Q4_0", 32, 18, {0, -1}},
    {3, "Q4_1", 32, 20, {0, 2}},       {6, "Q5_0", 32, 22, {0, -1}},
    {7, "Q5_1", 32, 24, {0, 2}},       {8, "Q8_0", 32, 34, {0, -1}},
    {10, "Q2_K", 256, 84, {80, 82}},   {11, "Q3_K", 256, 110, {108, -1}},
    {12, "Q4_K", 256, 144, {0, 2}},    {13, "Q5_K", 256, 176, {0, 2}},
    {14, "Q6_K", 256, 210, {208, -1}}, {20, "IQ4_NL", 32, 18, {0, -1}},
    {23, "IQ4_XS", 256, 136, {0, -1}}, {39, "MXFP4", 32, 17, {-1, -1}},
};
inline const GgufShape& gguf_shape(uint32_t type) {
  for (const GgufShape& shape : kGgufShapes) {
    if (shape.type == type) return shape;
  }
  return kGgufShapes[0];
}

inline std::vector<FormatCase> all_format_cases() {
  using enum StoredFormat;
  std::vector<FormatCase> cases;
  for (const DType type : {DType::kF32, DType::kF16, DType::kBF16}) {
    const std::string suffix = " " + std::string(dtype_name(type));
    cases.push_back({"plain" + suffix, kPlain, type});
    for (const int bits : {2, 3, 4, 5, 6, 8}) {
      const int group = bits == 2 ? 32 : bits == 4 ? 128 : 64;
      cases.push_back({"affine " + std::to_string(bits) + suffix, kAffine, type, bits, group});
    }
    cases.push_back({"fp8 blocks" + suffix, kFp8, type, 0, 128, 128});
    cases.push_back({"fp8 small blocks" + suffix, kFp8, type, 0, 64, 8});
    cases.push_back({"fp8 rows" + suffix, kFp8, type, 0, 0, 1});
    cases.push_back({"fp8 tensor" + suffix, kFp8, type, 0, 0, 0});
    for (const int bits : {4, 8}) {
      const std::string name = std::to_string(bits) + suffix;
      cases.push_back({"packed " + name, kPackedInt, type, bits, 32});
      cases.push_back({"packed rows " + name, kPackedInt, type, bits, 0});
      cases.push_back({"packed zeros " + name, kPackedInt, type, bits, 128, 1, true});
      cases.push_back({"gptq " + name, kGptq, type, bits, 64, 1, true, 1});
      cases.push_back({"gptq v2 " + name, kGptq, type, bits, 128, 1, true, 0});
      cases.push_back({"gptq symmetric " + name, kGptq, type, bits, 0, 1, false, 0});
      cases.push_back({"gptq act-order " + name, kGptq, type, bits, 64, 1, true, 1, true});
    }
    cases.push_back({"awq" + suffix, kAwq, type, 4, 64, 1, true});
  }
  cases.push_back({"mxfp8", kFp8, DType::kF8E8M0, 0, 32});
  cases.push_back({"mxfp4", kFp4, DType::kF8E8M0, 0, 32});
  cases.push_back({"nvfp4", kFp4, DType::kF8E4M3, 0, 16, 1, false, 0, false, 0.0123f});
  cases.push_back({"plain with a factor", kPlain, DType::kBF16, 0, 0, 1, false, 0, false, 3});
  for (const GgufShape& shape : kGgufShapes) {
    cases.push_back({.name = shape.name, .format = kGguf, .gguf_type = shape.type});
  }
  return cases;
}

// The parts are exactly as long as needed, and begin at odd addresses.
class RandomMatrix {
 public:
  RandomMatrix(const FormatCase& format, int rows, int columns, uint64_t seed,
               bool has_row_map = false)
      : random_(seed) {
    matrix.format = format.format;
    matrix.rows = rows;
    matrix.columns = columns;
    matrix.bits = format.bits;
    matrix.group = format.group;
    matrix.row_group = format.row_group;
    matrix.scale_type = format.scale_type;
    matrix.zero_bias = format.zero_bias;
    matrix.factor = format.factor;
    matrix.gguf_type = format.gguf_type;
    fill_codes();
    fill_scales();
    if (format.has_zeros) fill_zeros();
    if (format.has_act_order) fill_groups();
    if (has_row_map) fill_row_map();
  }
  RandomMatrix(const RandomMatrix&) = delete;

  StoredMatrix matrix;

 private:
  size_t up(size_t count, size_t by) const { return (count + by - 1) / by; }
  size_t rows() const { return static_cast<size_t>(matrix.rows); }
  size_t columns() const { return static_cast<size_t>(matrix.columns); }
  size_t groups() const {
    return matrix.group == 0 ? 1 : up(columns(), static_cast<size_t>(matrix.group));
  }
  uint32_t below(uint32_t limit) { return static_cast<uint32_t>(random_() >> 33) % limit; }

  std::byte* add(size_t bytes, std::span<const std::byte>& part) {
    parts_.push_back(std::make_unique<std::byte[]>(bytes + 1));
    part = {parts_.back().get() + 1, bytes};
    return parts_.back().get() + 1;
  }
  void fill_random(std::byte* out, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i) out[i] = static_cast<std::byte>(below(256));
  }
  // A number of moderate size.
  void put_float(DType type, std::byte* out) {
    const uint32_t sign = below(4) == 0 ? 1 : 0;
    if (type == DType::kF32) {
      const uint32_t bits = sign << 31 | (110 + below(24)) << 23 | below(1 << 23);
      std::memcpy(out, &bits, 4);
    } else if (type == DType::kF16 || type == DType::kBF16) {
      const auto bits = static_cast<uint16_t>(
          type == DType::kF16 ? sign << 15 | below(20) << 10 | below(1 << 10)
                              : sign << 15 | (110 + below(24)) << 7 | below(1 << 7));
      std::memcpy(out, &bits, 2);
    } else if (type == DType::kF8E8M0) {
      *out = static_cast<std::byte>(100 + below(50));
    } else {
      *out = static_cast<std::byte>(sign << 7 | below(127));
    }
  }

  void fill_codes() {
    switch (matrix.format) {
      case StoredFormat::kPlain:
        matrix.row_bytes = columns() * dtype_bytes(matrix.scale_type) + 2;
        return fill_plain(matrix.scale_type);
      case StoredFormat::kGguf:
        return fill_gguf();
      case StoredFormat::kGptq: {
        const size_t words = up(columns(), static_cast<size_t>(32 / matrix.bits)) * rows();
        return fill_random(add(words * 4, matrix.codes), words * 4);
      }
      case StoredFormat::kAwq: {
        const size_t words = columns() * up(rows(), 8);
        return fill_random(add(words * 4, matrix.codes), words * 4);
      }
      default:
        break;
    }
    const size_t bits = matrix.format == StoredFormat::kFp8   ? 8
                        : matrix.format == StoredFormat::kFp4 ? 4
                                                              : static_cast<size_t>(matrix.bits);
    const size_t used = up(columns() * bits, 8);
    matrix.row_bytes = used + 3;
    const size_t bytes = rows() == 0 ? 0 : (rows() - 1) * matrix.row_bytes + used;
    std::byte* out = add(bytes, matrix.codes);
    fill_random(out, bytes);
    if (matrix.format != StoredFormat::kFp8) return;
    for (size_t i = 0; i < bytes; ++i) put_float(DType::kF8E4M3, out + i);
  }
  void fill_plain(DType type) {
    const size_t used = columns() * dtype_bytes(type);
    std::byte* out = add(rows() == 0 ? 0 : (rows() - 1) * matrix.row_bytes + used, matrix.codes);
    for (size_t row = 0; row < rows(); ++row) {
      for (size_t i = 0; i < used; i += dtype_bytes(type)) {
        put_float(type, out + row * matrix.row_bytes + i);
      }
    }
  }
  void fill_gguf() {
    const GgufShape& shape = gguf_shape(matrix.gguf_type);
    const size_t blocks = up(columns(), static_cast<size_t>(shape.columns));
    matrix.row_bytes = blocks * static_cast<size_t>(shape.bytes);
    if (shape.type == 0) return fill_plain(DType::kF32);
    if (shape.type == 30) return fill_plain(DType::kBF16);
    std::byte* out = add(rows() * matrix.row_bytes, matrix.codes);
    fill_random(out, rows() * matrix.row_bytes);
    for (size_t block = 0; block < rows() * blocks; ++block) {
      std::byte* begin = out + block * static_cast<size_t>(shape.bytes);
      for (const int half : shape.halves) {
        if (half >= 0) put_float(DType::kF16, begin + half);
      }
      if (shape.type == 39) put_float(DType::kF8E8M0, begin);
    }
  }
  void fill_floats(size_t count, std::span<const std::byte>& part) {
    const size_t bytes = dtype_bytes(matrix.scale_type);
    std::byte* out = add(count * bytes, part);
    for (size_t i = 0; i < count; ++i) put_float(matrix.scale_type, out + i * bytes);
  }
  void fill_scales() {
    if (matrix.format == StoredFormat::kPlain || matrix.format == StoredFormat::kGguf) return;
    const size_t row_groups =
        matrix.row_group == 0 ? 1 : up(rows(), static_cast<size_t>(matrix.row_group));
    fill_floats(row_groups * groups(), matrix.scales);
    if (matrix.format == StoredFormat::kAffine) fill_floats(row_groups * groups(), matrix.biases);
  }
  void fill_zeros() {
    const size_t words = up(rows(), static_cast<size_t>(32 / matrix.bits)) * groups();
    std::byte* out = add(words * 4, matrix.zeros);
    fill_random(out, words * 4);
    // 255 is a separate case.
    for (size_t i = 0; i < words * 4; ++i) {
      if (out[i] == std::byte{255}) out[i] = std::byte{254};
    }
  }
  void fill_groups() {
    std::byte* out = add(columns() * 4, matrix.groups);
    for (size_t i = 0; i < columns(); ++i) {
      const auto group = static_cast<int32_t>(below(static_cast<uint32_t>(groups())));
      std::memcpy(out + i * 4, &group, 4);
    }
  }
  void fill_row_map() {
    for (int i = 0; i < matrix.rows; ++i) map_.push_back(i);
    std::shuffle(map_.begin(), map_.end(), random_);
    matrix.row_map = map_;
  }

  std::mt19937_64 random_;
  std::vector<std::unique_ptr<std::byte[]>> parts_;
  std::vector<int32_t> map_;
};

}  // namespace lockstep::testing
