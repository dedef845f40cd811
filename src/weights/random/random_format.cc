#include "weights/random/random_format.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <iterator>

#include "base/check.h"
#include "base/hash.h"
#include "gguf/gguf.h"
#include "tensor/ggml_blocks.h"

namespace lockstep {
namespace {

constexpr float kSpread = 0.0346f;  // +-: uniform values with a root mean square of 0.02

constexpr RandomPart weights_of(DType type) {
  return {.content = RandomContent::kWeights, .type = type};
}

constexpr RandomPart constant(DType type, float value) {
  return {.content = RandomContent::kConstant, .type = type, .value = value};
}

constexpr RandomPart kAnyCodes = {.content = RandomContent::kCodes};
constexpr RandomPart kFp8Codes = {.content = RandomContent::kFp8Codes};

constexpr RandomFormat plain(std::string_view name, DType type) {
  return {.name = name, .scale_type = type, .codes = weights_of(type)};
}

constexpr RandomFormat mlx(std::string_view name, int bits) {
  const float codes = static_cast<float>(1 << bits);
  const float scale = 2 * kSpread / codes;
  return {.name = name,
          .stored = StoredFormat::kAffine,
          .bits = bits,
          .group = 64,
          .codes = kAnyCodes,
          .scales = constant(DType::kBF16, scale),
          .biases = constant(DType::kBF16, -scale * (codes - 1) / 2)};
}

// E2M1 codes are 2.9 on average, E4M3 codes 106.
constexpr RandomFormat kFp8 = {.name = "fp8",
                               .stored = StoredFormat::kFp8,
                               .bits = 8,
                               .group = 128,
                               .row_group = 128,
                               .scale_type = DType::kF32,
                               .codes = kFp8Codes,
                               .scales = constant(DType::kF32, 0.02f / 106)};
constexpr RandomFormat kMxfp8 = {.name = "mxfp8",
                                 .stored = StoredFormat::kFp8,
                                 .bits = 8,
                                 .group = 32,
                                 .scale_type = DType::kF8E8M0,
                                 .codes = kFp8Codes,
                                 .scales = constant(DType::kF8E8M0, 0x1p-12f)};
constexpr RandomFormat kMxfp4 = {.name = "mxfp4",
                                 .stored = StoredFormat::kFp4,
                                 .bits = 4,
                                 .group = 32,
                                 .scale_type = DType::kF8E8M0,
                                 .codes = kAnyCodes,
                                 .scales = constant(DType::kF8E8M0, 0x1p-7f)};
constexpr RandomFormat kNvfp4 = {.name = "nvfp4",
                                 .stored = StoredFormat::kFp4,
                                 .bits = 4,
                                 .group = 16,
                                 .scale_type = DType::kF8E4M3,
                                 .factor = 0.02f / 2.9f,
                                 .codes = kAnyCodes,
                                 .scales = constant(DType::kF8E4M3, 1)};
constexpr RandomFormat kInt4 = {.name = "int4",
                                .stored = StoredFormat::kPackedInt,
                                .bits = 4,
                                .group = 32,
                                .codes = kAnyCodes,
                                .scales = constant(DType::kBF16, 2 * kSpread / 16)};
constexpr RandomFormat kGptq = {.name = "gptq4",
                                .stored = StoredFormat::kGptq,
                                .bits = 4,
                                .group = 128,
                                .scale_type = DType::kF16,
                                .codes = kAnyCodes,
                                .scales = constant(DType::kF16, 2 * kSpread / 16),
                                .zeros = kAnyCodes};
constexpr RandomFormat kAwq = {.name = "awq4",
                               .stored = StoredFormat::kAwq,
                               .bits = 4,
                               .group = 128,
                               .scale_type = DType::kF16,
                               .codes = kAnyCodes,
                               .scales = constant(DType::kF16, 2 * kSpread / 16),
                               .zeros = kAnyCodes};

constexpr RandomFormat ggml(std::string_view name, GgmlType type, std::string_view otherwise) {
  const auto id = static_cast<uint32_t>(type);
  return {.name = name,
          .stored = StoredFormat::kGguf,
          .gguf_type = id,
          .codes = {.content = RandomContent::kBlocks, .gguf_type = id},
          .otherwise = otherwise};
}

constexpr RandomFormat kFormats[] = {
    plain("f32", DType::kF32),
    plain("f16", DType::kF16),
    plain("bf16", DType::kBF16),
    mlx("mlx2", 2),
    mlx("mlx3", 3),
    mlx("mlx4", 4),
    mlx("mlx5", 5),
    mlx("mlx6", 6),
    mlx("mlx8", 8),
    kFp8,
    kMxfp8,
    kMxfp4,
    kNvfp4,
    kInt4,
    kGptq,
    kAwq,
    ggml("q4_0", GgmlType::kQ4_0, "f16"),
    ggml("q4_1", GgmlType::kQ4_1, "f16"),
    ggml("q5_0", GgmlType::kQ5_0, "f16"),
    ggml("q5_1", GgmlType::kQ5_1, "f16"),
    ggml("q8_0", GgmlType::kQ8_0, "f16"),
    ggml("q2_k", GgmlType::kQ2_K, "iq4_nl"),
    ggml("q3_k", GgmlType::kQ3_K, "iq4_nl"),
    ggml("q4_k", GgmlType::kQ4_K, "q5_0"),
    ggml("q5_k", GgmlType::kQ5_K, "q5_1"),
    ggml("q6_k", GgmlType::kQ6_K, "q8_0"),
    ggml("iq4_nl", GgmlType::kIQ4_NL, "f16"),
    ggml("iq4_xs", GgmlType::kIQ4_XS, "iq4_nl"),
};

// The offsets of a block's half-precision factors, and their values for weights of about 0.02.
// https://github.com/ggml-org/ggml/blob/master/src/ggml-common.h
struct BlockFactors {
  GgmlType type;
  size_t scale_at;
  float scale;
  size_t minimum_at;  // with `minimum`; 0: none in this format
  float minimum;
};

constexpr BlockFactors kBlockFactors[] = {
    {GgmlType::kQ4_0, 0, 4.3e-3f, 0, 0},       {GgmlType::kQ4_1, 0, 4.3e-3f, 2, -0.0325f},
    {GgmlType::kQ5_0, 0, 2.17e-3f, 0, 0},      {GgmlType::kQ5_1, 0, 2.17e-3f, 2, -0.0336f},
    {GgmlType::kQ8_0, 0, 2.7e-4f, 0, 0},       {GgmlType::kQ2_K, 80, 1.44e-3f, 82, 2.16e-3f},
    {GgmlType::kQ3_K, 108, 4.6e-4f, 0, 0},     {GgmlType::kQ4_K, 0, 7.7e-5f, 2, 5.8e-4f},
    {GgmlType::kQ5_K, 0, 3.8e-5f, 2, 5.9e-4f}, {GgmlType::kQ6_K, 208, 1.46e-5f, 0, 0},
    {GgmlType::kIQ4_NL, 0, 2.8e-4f, 0, 0},     {GgmlType::kIQ4_XS, 0, 1.54e-5f, 0, 0},
};

// For magnitudes that a half can hold; extra bits are cut off.
uint16_t f16_towards_zero(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = bits >> 16 & 0x8000;
  const float magnitude = std::fabs(value);
  if (magnitude < 0x1p-14f) return static_cast<uint16_t>(sign | uint32_t(magnitude * 0x1p24f));
  const uint32_t exponent = (bits >> 23 & 0xff) - 112;
  return static_cast<uint16_t>(sign | exponent << 10 | (bits >> 13 & 0x3ff));
}

void store(std::byte* to, DType type, float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const auto put = [&](auto stored) { std::memcpy(to, &stored, sizeof(stored)); };
  switch (type) {
    case DType::kF32:
      return put(bits);
    case DType::kF16:
      return put(f16_towards_zero(value));
    case DType::kBF16:
      return put(static_cast<uint16_t>(bits >> 16));
    case DType::kF8E8M0:  // the exponent of a power of two
      return put(static_cast<uint8_t>(bits >> 23));
    case DType::kF8E4M3:
      LOCKSTEP_CHECK(value == 1);
      return put(uint8_t{0x38});
    default:
      LOCKSTEP_CHECK(false);
  }
}

// The i-th number of SplitMix64, which is a function of i alone.
uint64_t mixed(uint64_t i) {
  return mix64((i + 1) * 0x9e3779b97f4a7c15u);
}

void fill_bytes(std::span<std::byte> out) {
  for (size_t at = 0; at < out.size(); at += 8) {
    const uint64_t value = mixed(at / 8);
    std::memcpy(&out[at], &value, std::min<size_t>(8, out.size() - at));
  }
}

void fill_elements(std::span<std::byte> out, const RandomPart& part) {
  const size_t size = dtype_bytes(part.type);
  for (size_t i = 0; i < out.size() / size; ++i) {
    const double even = static_cast<double>(mixed(i) >> 11) * 0x1p-53;
    float value = static_cast<float>(kSpread * (2 * even - 1));
    if (part.content == RandomContent::kConstant) value = part.value;
    if (part.content == RandomContent::kCount) {
      value = static_cast<float>(i % static_cast<size_t>(part.value));
    }
    store(&out[i * size], part.type, value);
  }
}

void set_factors(std::span<std::byte> blocks, uint32_t gguf_type) {
  const auto* factors = std::find_if(
      std::begin(kBlockFactors), std::end(kBlockFactors),
      [&](const auto& entry) { return static_cast<uint32_t>(entry.type) == gguf_type; });
  LOCKSTEP_CHECK(factors != std::end(kBlockFactors));
  const size_t block = gguf_block(gguf_type)->bytes;
  for (size_t at = 0; at < blocks.size(); at += block) {
    store(&blocks[at + factors->scale_at], DType::kF16, factors->scale);
    if (factors->minimum_at == 0) continue;
    store(&blocks[at + factors->minimum_at], DType::kF16, factors->minimum);
  }
}

size_t divided_up(size_t value, int by) {
  return by == 0 ? 1 : (value + static_cast<size_t>(by) - 1) / static_cast<size_t>(by);
}

bool has_whole_groups(const RandomFormat& format, int rows, int columns) {
  switch (format.stored) {
    case StoredFormat::kPlain:
    case StoredFormat::kFp8:
      return format.row_group > 1 || format.group == 0 || columns % format.group == 0;
    case StoredFormat::kGguf:
      return static_cast<uint64_t>(columns) % gguf_block(format.gguf_type)->elements == 0;
    case StoredFormat::kGptq:
    case StoredFormat::kAwq:
      return columns % format.group == 0 && rows % 8 == 0;
    default:
      return columns % format.group == 0;
  }
}

}  // namespace

std::span<const RandomFormat> random_formats() {
  return kFormats;
}

const RandomFormat* find_random_format(std::string_view name) {
  const auto* found = std::find_if(std::begin(kFormats), std::end(kFormats),
                                   [&](const RandomFormat& format) { return format.name == name; });
  return found == std::end(kFormats) ? nullptr : found;
}

RandomLayout random_layout(const RandomFormat& format, int rows, int columns) {
  if (!has_whole_groups(format, rows, columns)) {
    const auto* other = find_random_format(format.otherwise.empty() ? "bf16" : format.otherwise);
    return random_layout(*other, rows, columns);
  }
  const auto high = static_cast<size_t>(rows), wide = static_cast<size_t>(columns);
  RandomLayout layout{.format = &format};
  if (format.stored == StoredFormat::kPlain) {
    layout.row_bytes = wide * dtype_bytes(format.scale_type);
  } else if (format.stored == StoredFormat::kGguf) {
    const GgufBlock block = *gguf_block(format.gguf_type);
    layout.row_bytes = wide / block.elements * block.bytes;
  } else {
    layout.row_bytes = wide * static_cast<size_t>(format.bits) / 8;
  }
  layout.code_bytes = high * layout.row_bytes;
  if (format.scales.content == RandomContent::kNone) return layout;
  const size_t groups = divided_up(high, format.row_group) * divided_up(wide, format.group);
  layout.scale_bytes = groups * dtype_bytes(format.scale_type);
  if (format.zeros.content != RandomContent::kNone) {
    layout.zero_bytes = groups * static_cast<size_t>(format.bits) / 8;
  }
  return layout;
}

size_t random_unit_bytes(const RandomPart& part) {
  if (part.content == RandomContent::kBlocks) return gguf_block(part.gguf_type)->bytes;
  const size_t element = dtype_bytes(part.type);
  if (part.content == RandomContent::kCount) return element * static_cast<size_t>(part.value);
  return element;
}

std::vector<std::byte> random_pattern(const RandomPart& part, size_t bytes) {
  LOCKSTEP_CHECK(bytes % random_unit_bytes(part) == 0);
  std::vector<std::byte> pattern(bytes);
  const bool has_elements = part.content == RandomContent::kWeights ||
                            part.content == RandomContent::kConstant ||
                            part.content == RandomContent::kCount;
  if (has_elements) {
    fill_elements(pattern, part);
    return pattern;
  }
  fill_bytes(pattern);
  if (part.content == RandomContent::kBlocks) set_factors(pattern, part.gguf_type);
  if (part.content == RandomContent::kFp8Codes) {
    constexpr auto kNan = std::byte{0x7f};
    for (std::byte& code : pattern) {
      if ((code & kNan) == kNan) code ^= std::byte{1};
    }
  }
  return pattern;
}

}  // namespace lockstep
