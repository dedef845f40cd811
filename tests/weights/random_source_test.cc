#include "weights/random/random_source.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tensor/ggml_blocks.h"
#include "tensor/half.h"
#include "weights/repeated_bytes.h"

namespace lockstep {
namespace {

std::shared_ptr<const WeightSource> make_source(std::string_view format) {
  auto source = open_random_source(
      format, {{.name = "a.weight", .rows = 48, .columns = 512},
               {.name = "b.weight", .rows = 300, .columns = 512},
               {.name = "odd.weight", .rows = 8, .columns = 96},
               {.name = "router.weight", .rows = 8, .columns = 512, .is_never_quantised = true},
               {.name = "input_layernorm.weight", .rows = 512, .columns = 1, .is_vector = true},
               {.name = "q_proj.bias", .rows = 512, .columns = 1, .is_vector = true}});
  REQUIRE_MESSAGE(source.ok(), source.error().message);
  return source.value();
}

StoredMatrix matrix_of(const WeightSource& source, std::string_view name, int rows, int columns) {
  auto matrix = source.matrix({.name = name, .rows = rows, .columns = columns});
  REQUIRE_MESSAGE(matrix.ok(), matrix.error().message);
  return matrix.value();
}

size_t stored_bytes(const StoredMatrix& matrix) {
  return matrix.codes.size() + matrix.scales.size() + matrix.biases.size() + matrix.zeros.size();
}

TEST_CASE("a format has the bits per weight that it specifies") {
  struct Case {
    std::string_view format;
    double bits;
  };
  constexpr Case kCases[] = {
      {"f32", 32},     {"f16", 16},      {"bf16", 16},  {"mlx2", 2.5},      {"mlx3", 3.5},
      {"mlx4", 4.5},   {"mlx5", 5.5},    {"mlx6", 6.5}, {"mlx8", 8.5},      {"mxfp8", 8.25},
      {"mxfp4", 4.25}, {"nvfp4", 4.5},   {"int4", 4.5}, {"gptq4", 4.15625}, {"awq4", 4.15625},
      {"q4_0", 4.5},   {"q4_1", 5},      {"q5_0", 5.5}, {"q5_1", 6},        {"q8_0", 8.5},
      {"q2_k", 2.625}, {"q3_k", 3.4375}, {"q4_k", 4.5}, {"q5_k", 5.5},      {"q6_k", 6.5625},
      {"iq4_nl", 4.5}, {"iq4_xs", 4.25}};
  for (const Case& expected : kCases) {
    CAPTURE(expected.format);
    const auto source = make_source(expected.format);
    const StoredMatrix matrix = matrix_of(*source, "a.weight", 48, 512);
    CHECK(static_cast<double>(stored_bytes(matrix)) * 8 / (48 * 512) == expected.bits);
  }
  // Blocks of 128 x 128, the last of which is partial.
  const auto fp8 = make_source("fp8");
  CHECK(matrix_of(*fp8, "b.weight", 300, 512).scales.size() == size_t{3} * 4 * 4);
}

TEST_CASE("columns that are not whole groups use another format") {
  CHECK(matrix_of(*make_source("mlx4"), "odd.weight", 8, 96).format == StoredFormat::kPlain);
  const StoredMatrix q4_k = matrix_of(*make_source("q4_k"), "odd.weight", 8, 96);
  CHECK(q4_k.gguf_type == static_cast<uint32_t>(GgmlType::kQ5_0));
  CHECK(q4_k.codes.size() == size_t{8} * 3 * 22);
}

TEST_CASE("a router is never quantised, and only float formats change it") {
  CHECK(matrix_of(*make_source("mlx4"), "router.weight", 8, 512).scale_type == DType::kBF16);
  CHECK(matrix_of(*make_source("f32"), "router.weight", 8, 512).scale_type == DType::kF32);
}

TEST_CASE("plain weights are finite, small and not all alike") {
  for (const std::string_view format : {"f32", "f16", "bf16"}) {
    CAPTURE(format);
    const auto source = make_source(format);
    const StoredMatrix matrix = matrix_of(*source, "b.weight", 300, 512);
    double squares = 0;
    for (size_t i = 0; i < size_t{300} * 512; ++i) {
      const float value = load_element(matrix.codes.data(), matrix.scale_type, i);
      REQUIRE(std::fabs(value) < 0.035f);
      squares += double{value} * value;
    }
    CHECK(std::sqrt(squares / (300 * 512)) == doctest::Approx(0.02).epsilon(0.02));
  }
}

TEST_CASE("affine scales and biases centre the codes at zero") {
  const auto source = make_source("mlx4");
  const StoredMatrix matrix = matrix_of(*source, "a.weight", 48, 512);
  const float scale = load_element(matrix.scales.data(), DType::kBF16, 5);
  const float bias = load_element(matrix.biases.data(), DType::kBF16, 5);
  CHECK(scale * 7.5f + bias == doctest::Approx(0).epsilon(0.001));
  CHECK(scale * 15 + bias == doctest::Approx(0.0346 * 15 / 16).epsilon(0.02));
}

TEST_CASE("blocks of ggml have the factors that make their weights small") {
  const auto source = make_source("q6_k");
  const StoredMatrix matrix = matrix_of(*source, "a.weight", 48, 512);
  for (size_t block = 0; block < matrix.codes.size() / 210; ++block) {
    const float scale = load_element(&matrix.codes[block * 210 + 208], DType::kF16, 0);
    REQUIRE(scale == doctest::Approx(1.46e-5).epsilon(0.01));
  }
}

TEST_CASE("codes of FP8 are never NaN") {
  const auto source = make_source("fp8");
  const StoredMatrix matrix = matrix_of(*source, "b.weight", 300, 512);
  const auto is_nan = [](std::byte code) { return (code & std::byte{0x7f}) == std::byte{0x7f}; };
  CHECK(std::none_of(matrix.codes.begin(), matrix.codes.end(), is_nan));
}

TEST_CASE("norms are one, biases zero") {
  const auto source = make_source("mlx4");
  const auto norm = source->vector("input_layernorm.weight", -1, 512);
  REQUIRE(norm.ok());
  CHECK(load_element(norm.value().bytes.data(), norm.value().dtype, 511) == 1);
  const auto bias = source->vector("q_proj.bias", -1, 512);
  REQUIRE(bias.ok());
  CHECK(load_element(bias.value().bytes.data(), bias.value().dtype, 511) == 0);
}

TEST_CASE("a name has the same weights in every process, another name different ones") {
  const auto first = make_source("bf16"), second = make_source("bf16");
  const StoredMatrix one = matrix_of(*first, "a.weight", 48, 512);
  const StoredMatrix same = matrix_of(*second, "a.weight", 48, 512);
  const StoredMatrix other = matrix_of(*first, "b.weight", 300, 512);
  CHECK(std::memcmp(one.codes.data(), same.codes.data(), one.codes.size()) == 0);
  CHECK(std::memcmp(one.codes.data(), other.codes.data(), one.codes.size()) != 0);
}

TEST_CASE("the size of all files is the sum over all tensors") {
  const auto source = make_source("bf16");
  CHECK(source->file_bytes() == 2 * (48 * 512 + 300 * 512 + 8 * 96 + 8 * 512 + 512 + 512));
}

TEST_CASE("an unknown format, name or shape is refused") {
  const auto source = make_source("bf16");
  CHECK_FALSE(source->has("c.weight"));
  CHECK(source->has("a.weight"));
  CHECK(source->matrix({.name = "c.weight", .rows = 1, .columns = 1}).error().code ==
        ErrorCode::kNotFound);
  CHECK(source->matrix({.name = "a.weight", .rows = 1, .columns = 512}).error().code ==
        ErrorCode::kCorrupt);
  const auto unknown = open_random_source("q9_z", {});
  REQUIRE_FALSE(unknown.ok());
  CHECK(unknown.error().code == ErrorCode::kInvalidArgument);
  CHECK(unknown.error().message.find("iq4_xs") != std::string::npos);
}

TEST_CASE("a pattern is in memory once and mapped at many addresses") {
  std::vector<std::byte> pattern(RepeatedBytes::page_bytes());
  for (size_t i = 0; i < pattern.size(); ++i) pattern[i] = static_cast<std::byte>(i * 7 >> 3);
  const auto repeated = RepeatedBytes::make(pattern, pattern.size() * 3 + 1);
  REQUIRE(repeated.ok());
  const auto bytes = repeated.value().bytes();
  REQUIRE(bytes.size() == pattern.size() * 4);
  for (size_t copy = 0; copy < 4; ++copy) {
    CHECK(std::memcmp(&bytes[copy * pattern.size()], pattern.data(), pattern.size()) == 0);
  }
}

}  // namespace
}  // namespace lockstep
