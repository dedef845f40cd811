#include "weights/quantised/quantised_matrix.h"

#include <doctest/doctest.h>

#include <limits>
#include <string>
#include <vector>

#include "support/defined_weights.h"
#include "support/memory_source.h"
#include "support/text.h"

using namespace lockstep;
using lockstep::testing::defined_weight;

namespace {

constexpr uint8_t kOne = 0x38;  // 1.0 in E4M3
constexpr uint8_t kTwo = 0x40;

constexpr const char* kGptq = R"({"quantization_config":{"quant_method":"gptq"}})";
constexpr const char* kGptqV2 =
    R"({"quantization_config":{"quant_method":"gptq","checkpoint_format":"gptq_v2"}})";
constexpr const char* kAwq = R"({"quantization_config":{"quant_method":"awq","version":"gemm"}})";

// Packs `codes`, the lowest bits of each byte first.
std::string packed(const std::vector<unsigned>& codes, int bits) {
  std::string bytes((codes.size() * static_cast<size_t>(bits) + 7) / 8, '\0');
  size_t position = 0;
  for (const unsigned code : codes) {
    for (int i = 0; i < bits; ++i, ++position) {
      const unsigned bit = code >> i & 1;
      bytes[position / 8] = static_cast<char>(bytes[position / 8] | bit << position % 8);
    }
  }
  return bytes;
}

// 64 codes of `bits` bits, all different if the width allows it.
std::vector<unsigned> codes_of(int bits, int count = 64) {
  std::vector<unsigned> codes;
  for (int i = 0; i < count; ++i)
    codes.push_back(static_cast<unsigned>(7 * i + 3) & ((1u << bits) - 1));
  return codes;
}

}  // namespace

TEST_CASE("MLX's affine codes of every width are read, width and group from the shapes") {
  for (const int bits : {2, 3, 4, 5, 6, 8}) {
    CAPTURE(bits);
    const auto codes = codes_of(bits);
    const MemorySource source(MemorySafetensors()
                                  .tensor("a.weight", "U32", {1, 2 * bits}, packed(codes, bits))
                                  .tensor("a.scales", "F32", {1, 2}, std::vector<float>{0.5f, 2})
                                  .tensor("a.biases", "F32", {1, 2}, std::vector<float>{-1, 3}));
    const StoredMatrix matrix = source.matrix("a.weight", 1, 64);
    CHECK(matrix.format == StoredFormat::kAffine);
    CHECK(matrix.bits == bits);
    CHECK(matrix.group == 32);
    CHECK(matrix.row_bytes == static_cast<size_t>(8 * bits));
    for (int column = 0; column < 64; ++column) {
      const double code = codes[static_cast<size_t>(column)];
      CHECK(defined_weight(matrix, 0, column) == (column < 32 ? code * 0.5 - 1 : code * 2 + 3));
    }
  }
}

TEST_CASE("MLX's modes with scales of one byte are told apart by width and group") {
  const auto source_with = [](int words, int64_t groups, uint8_t scale) {
    return MemorySource(MemorySafetensors()
                            .filled("a.weight", "U32", {2, words}, uint32_t{0x38383838})
                            .filled("a.scales", "U8", {2, groups}, scale));
  };
  const auto mxfp4 = source_with(8, 2, 128).matrix("a.weight", 2, 64);
  CHECK(mxfp4.format == StoredFormat::kFp4);
  CHECK(mxfp4.scale_type == DType::kF8E8M0);
  CHECK(mxfp4.group == 32);
  const auto nvfp4 = source_with(8, 4, kTwo).matrix("a.weight", 2, 64);
  CHECK(nvfp4.format == StoredFormat::kFp4);
  CHECK(nvfp4.scale_type == DType::kF8E4M3);
  CHECK(nvfp4.group == 16);
  const MemorySource mxfp8_source = source_with(16, 2, 128);
  const auto mxfp8 = mxfp8_source.matrix("a.weight", 2, 64);
  CHECK(mxfp8.format == StoredFormat::kFp8);
  CHECK(defined_weight(mxfp8, 1, 63) == 2);
  const Error error = source_with(8, 1, 128).matrix_error("a.weight", 2, 64);
  CHECK(error.code == ErrorCode::kUnsupported);
  CHECK(contains(error.message, "a.scales scales groups of 64 codes of 4 bits"));
}

TEST_CASE("MLX parts that do not fit together are named") {
  const auto error_with = [](std::vector<int64_t> weight, std::vector<int64_t> scales,
                             std::vector<int64_t> biases) {
    return MemorySource(MemorySafetensors()
                            .filled("a.weight", "U32", weight, 0)
                            .filled("a.scales", "F32", scales, 1.0f)
                            .filled("a.biases", "F32", biases, 1.0f))
        .matrix_error("a.weight", 2, 64)
        .message;
  };
  CHECK(contains(error_with({2, 7}, {2, 2}, {2, 2}), "a.weight is U32 (2, 7) where packed codes"));
  CHECK(contains(error_with({2, 14}, {2, 2}, {2, 2}), "a.weight"));  // 7 bits
  CHECK(contains(error_with({2, int64_t{0}}, {2, 2}, {2, 2}), "a.weight"));
  CHECK(contains(error_with({3, 8}, {2, 2}, {2, 2}), "a.weight"));
  CHECK(contains(error_with({16}, {2, 2}, {2, 2}), "a.weight"));
  CHECK(contains(error_with({2, 8}, {2, 3}, {2, 3}), "a.scales is F32 (2, 3) where a scale"));
  CHECK(contains(error_with({2, 8}, {2, 16}, {2, 16}), "a.scales"));  // groups of 4
  CHECK(contains(error_with({2, 8}, {2, 0}, {2, 0}), "a.scales"));
  CHECK(contains(error_with({2, 8}, {1, 2}, {1, 2}), "a.scales"));
  CHECK(contains(error_with({2, 8}, {2, 2}, {2, 1}), "a.biases is F32 (2, 1)"));
  const MemorySource without_biases(MemorySafetensors()
                                        .filled("a.weight", "U32", {2, 8}, 0)
                                        .filled("a.scales", "F32", {2, 2}, 1.0f));
  CHECK(without_biases.matrix_error("a.weight", 2, 64).message ==
        "the checkpoint has parts of a but no tensor a.biases");
}

TEST_CASE("FP8 scales are per matrix, per row, per block or per group") {
  const auto source_with = [](const char* suffix, const char* dtype, std::vector<int64_t> shape,
                              const std::string& scales, const char* config = "{}") {
    return MemorySource(MemorySafetensors()
                            .filled("a.weight", "F8_E4M3", {3, 64}, kOne)
                            .tensor("a.input_scale", "F32", {}, std::vector<float>{100})
                            .tensor(std::string("a") + suffix, dtype, shape, scales),
                        config);
  };
  const auto floats = [](std::vector<float> values) { return MemorySafetensors::bytes_of(values); };
  for (const std::vector<int64_t>& one : {std::vector<int64_t>{}, {1}, {1, 1}}) {
    const auto source = source_with(".weight_scale", "F32", one, floats({4}));
    CHECK(source.matrix("a.weight", 3, 64).row_group == 0);
    CHECK(defined_weight(source.matrix("a.weight", 3, 64), 2, 63) == 4);
  }
  for (const std::vector<int64_t>& rows : {std::vector<int64_t>{3}, {3, 1}}) {
    const auto source = source_with(".weight_scale", "F32", rows, floats({4, 5, 6}));
    CHECK(defined_weight(source.matrix("a.weight", 3, 64), 0, 63) == 4);
    CHECK(defined_weight(source.matrix("a.weight", 3, 64), 2, 63) == 6);
  }
  const auto blocks =
      source_with(".weight_scale_inv", "F32", {2, 3}, floats({1, 2, 3, 4, 5, 6}),
                  R"({"quantization_config":{"quant_method":"fp8","weight_block_size":[2,24]}})");
  CHECK(defined_weight(blocks.matrix("a.weight", 3, 64), 1, 24) == 2);
  CHECK(defined_weight(blocks.matrix("a.weight", 3, 64), 2, 63) == 6);
  const auto groups = source_with(".weight_scale", "U8", {3, 2}, "\x7f\x80\x81\x82\x83\x84");
  CHECK(defined_weight(groups.matrix("a.weight", 3, 64), 1, 31) == 4);
  CHECK(defined_weight(groups.matrix("a.weight", 3, 64), 2, 32) == 32);
  CHECK(source_with(".weight_scale", "F32", {3, 2}, floats({1, 2, 3, 4, 5, 6}))
            .matrix_error("a.weight", 3, 64)
            .message ==
        "the tensor a.weight_scale is F32 (3, 2) where one scale, one for each row "
        "or one for each block of (128, 128) of (3, 64) is expected");
  const auto none = source_with(".other", "F32", {1}, floats({9}));
  CHECK(defined_weight(none.matrix("a.weight", 3, 64), 1, 1) == 1);
  const auto lost = source_with(".other", "F32", {1}, floats({9}),
                                R"({"quantization_config":{"quant_method":"fp8"}})");
  CHECK(lost.matrix_error("a.weight", 3, 64).message ==
        "the checkpoint is quantised (fp8) but has no scales for a.weight");
}

TEST_CASE("DeepSeek V4's scales are exponents, and two FP4 codes are a signed byte") {
  const MemorySource source(
      MemorySafetensors()
          .filled("a.weight", "F8_E4M3", {3, 64}, kOne)
          .tensor("a.scale", "F8_E8M0", {2, 3}, std::string("\x7f\x80\x81\x82\x83\x84"))
          .filled("b.weight", "I8", {3, 32}, '\xa4')  // 2 in even columns, -1 in odd ones
          .tensor("b.scale", "F8_E8M0", {3, 2}, std::string("\x7f\x80\x81\x82\x83\x84"))
          .filled("c.weight", "I8", {3, 32}, '\xa4')
          .tensor("c.scale", "F32", {3, 2}, std::vector<float>(6, 1.0f)),
      R"({"quantization_config":{"quant_method":"fp8","weight_block_size":[2,24]}})");
  CHECK(defined_weight(source.matrix("a.weight", 3, 64), 1, 24) == 2);
  CHECK(defined_weight(source.matrix("a.weight", 3, 64), 2, 63) == 32);
  const StoredMatrix fp4 = source.matrix("b.weight", 3, 64);
  CHECK((fp4.format == StoredFormat::kFp4 && fp4.group == 32));
  CHECK((defined_weight(fp4, 0, 0) == 2 && defined_weight(fp4, 0, 1) == -1));
  CHECK((defined_weight(fp4, 2, 31) == -8 * 2 && defined_weight(fp4, 2, 32) == 2 * 32));
  CHECK(source.matrix_error("c.weight", 3, 64).code == ErrorCode::kCorrupt);
}

TEST_CASE("compressed-tensors integers have an implied middle or packed zero points") {
  for (const int bits : {4, 8}) {
    CAPTURE(bits);
    const auto codes = codes_of(bits, 64);  // 4 rows of 16
    const int words = 16 * bits / 32, middle = 1 << (bits - 1);
    MemorySafetensors writer;
    writer.tensor("a.weight_packed", "I32", {4, words}, packed(codes, bits))
        .tensor("a.weight_scale", "F32", {4, 2}, std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8})
        .tensor("a.weight_shape", "I64", {2}, std::vector<int64_t>{4, 16});
    const auto code = [&](int row, int column) {
      return static_cast<double>(codes[static_cast<size_t>(16 * row + column)]);
    };
    const MemorySource symmetric(writer);
    const auto matrix = symmetric.matrix("a.weight", 4, 16);
    CHECK(matrix.bits == bits);
    CHECK(matrix.group == 8);
    CHECK(defined_weight(matrix, 3, 15) == (code(3, 15) - middle) * 8);
    CHECK(defined_weight(matrix, 1, 7) == (code(1, 7) - middle) * 3);
    // (words, groups): the codes of a group's rows fill one word.
    const unsigned fill = bits == 4 ? 0x00004321u : 0x04030201u;
    writer.tensor("a.weight_zero_point", "I32", {1, 2}, std::vector<uint32_t>{0, fill});
    const MemorySource with_zeros(writer);
    CHECK(defined_weight(with_zeros.matrix("a.weight", 4, 16), 2, 15) == (code(2, 15) - 3) * 6);
    CHECK(defined_weight(with_zeros.matrix("a.weight", 4, 16), 2, 0) == code(2, 0) * 5);
  }
}

TEST_CASE("compressed-tensors rows need not fill whole words, and may have one scale") {
  const MemorySource source(MemorySafetensors()
                                .filled("a.weight_packed", "I32", {2, 2}, 0x99999999u)
                                .filled("a.weight_scale", "F32", {2, 1}, 3.0f)
                                .tensor("a.weight_shape", "I32", {2}, std::vector<int32_t>{2, 10}));
  const auto matrix = source.matrix("a.weight", 2, 10);
  CHECK(matrix.group == 0);
  CHECK(defined_weight(matrix, 1, 9) == 3);
  CHECK(contains(source.matrix_error("a.weight", 2, 11).message,
                 "a.weight_shape says (2, 10) where (2, 11) is expected"));
}

TEST_CASE("compressed-tensors columns ordered by activation are refused") {
  const auto source_with = [](const std::vector<int32_t>& groups) {
    return MemorySource(MemorySafetensors()
                            .filled("a.weight_packed", "I32", {8, 2}, 0)
                            .filled("a.weight_scale", "F32", {8, 2}, 1.0f)
                            .tensor("a.weight_g_idx", "I32", {16}, groups));
  };
  std::vector<int32_t> in_order(16, 0);
  for (size_t i = 8; i < 16; ++i) in_order[i] = 1;
  CHECK(source_with(in_order).matrix("a.weight", 8, 16).groups.empty());
  CHECK(source_with(std::vector<int32_t>(16, -1)).matrix("a.weight", 8, 16).group == 8);
  std::swap(in_order[0], in_order[15]);
  CHECK(source_with(in_order).matrix_error("a.weight", 8, 16).code == ErrorCode::kUnsupported);
}

TEST_CASE("NVFP4 has the second scale of its producer: a divisor or a factor") {
  MemorySafetensors writer;
  writer.filled("a.weight_packed", "U8", {2, 16}, uint8_t{0x72})
      .filled("a.weight_scale", "F8_E4M3", {2, 2}, kTwo)
      .tensor("a.weight_global_scale", "F32", {1}, std::vector<float>{4});
  const MemorySource compressed(writer);
  CHECK(defined_weight(compressed.matrix("a.weight", 2, 32), 1, 30) == 1 * 2 / 4.0);
  CHECK(defined_weight(compressed.matrix("a.weight", 2, 32), 1, 31) == 6 * 2 / 4.0);
  const MemorySource modelopt(MemorySafetensors()
                                  .filled("a.weight", "U8", {2, 16}, uint8_t{0x72})
                                  .filled("a.weight_scale", "F8_E4M3", {2, 2}, kTwo)
                                  .filled("a.weight_scale_2", "F32", {}, 4.0f));
  CHECK(defined_weight(modelopt.matrix("a.weight", 2, 32), 1, 31) == 6 * 2 * 4.0);
  const MemorySource microscaling(MemorySafetensors()
                                      .filled("a.weight_packed", "U8", {2, 16}, uint8_t{0x72})
                                      .filled("a.weight_scale", "U8", {2, 1}, uint8_t{130}));
  CHECK(defined_weight(microscaling.matrix("a.weight", 2, 32), 1, 31) == 6 * 8);
  for (const float global : {0.0f, -1.0f, std::numeric_limits<float>::infinity()}) {
    const MemorySource broken(MemorySafetensors()
                                  .filled("a.weight", "U8", {2, 16}, uint8_t{0})
                                  .filled("a.weight_scale", "F8_E4M3", {2, 2}, kTwo)
                                  .filled("a.weight_scale_2", "F32", {}, global));
    CHECK(broken.matrix_error("a.weight", 2, 32).code == ErrorCode::kCorrupt);
  }
}

TEST_CASE("GPTQ packs along the columns, with zero points stored minus one before version 2") {
  // 8 rows, 16 columns in 2 groups: words (2, 8), each of 8 columns of a row.
  const auto codes = codes_of(4, 128);
  MemorySafetensors writer;
  writer.tensor("a.qweight", "I32", {2, 8}, packed(codes, 4))
      .tensor("a.qzeros", "I32", {2, 1}, packed(codes_of(4, 16), 4))
      .filled("a.scales", "F32", {2, 8}, 2.0f);
  const auto expected = [&](int row, int column, int group, int bias) {
    const int code =
        static_cast<int>(codes[static_cast<size_t>((column / 8 * 8 + row) * 8 + column % 8)]);
    const int zero = static_cast<int>(codes_of(4, 16)[static_cast<size_t>(8 * group + row)]);
    return 2.0 * (code - zero - bias);
  };
  const MemorySource first(writer, kGptq), second(writer, kGptqV2);
  CHECK(first.matrix("a.weight", 8, 16).zero_bias == 1);
  CHECK(defined_weight(first.matrix("a.weight", 8, 16), 5, 11) == expected(5, 11, 1, 1));
  CHECK(defined_weight(second.matrix("a.weight", 8, 16), 5, 11) == expected(5, 11, 1, 0));
  std::vector<int32_t> order(16, 0);
  for (size_t i = 8; i < 16; ++i) order[i] = 1;
  MemorySafetensors in_order = writer, reordered = writer, broken = writer;
  in_order.tensor("a.g_idx", "I32", {16}, order);
  CHECK(MemorySource(in_order, kGptq).matrix("a.weight", 8, 16).groups.empty());
  std::swap(order[3], order[11]);
  reordered.tensor("a.g_idx", "I32", {16}, order);
  const MemorySource by_activation(reordered, kGptq);
  CHECK(defined_weight(by_activation.matrix("a.weight", 8, 16), 5, 11) == expected(5, 11, 0, 1));
  order[15] = 2;
  broken.tensor("a.g_idx", "I32", {16}, order);
  CHECK(MemorySource(broken, kGptq).matrix_error("a.weight", 8, 16).message ==
        "the tensor a.g_idx puts column 15 into group 2 of 2");
  CHECK(MemorySource(writer).matrix_error("a.weight", 8, 16).code == ErrorCode::kUnsupported);
}

TEST_CASE("AWQ packs along the rows in the order of its kernels") {
  // Element (row, column) of word (column, 0): nibbles 0 to 7 hold rows 0 2 4 6 1 3 5 7.
  const MemorySource source(MemorySafetensors()
                                .filled("a.qweight", "I32", {16, 1}, 0x76543210u)
                                .filled("a.qzeros", "I32", {1, 1}, 0x11111111u)
                                .filled("a.scales", "F16", {1, 8}, uint16_t{0x4000}),
                            kAwq);
  const auto matrix = source.matrix("a.weight", 8, 16);
  CHECK(matrix.format == StoredFormat::kAwq);
  const double places[] = {0, 4, 1, 5, 2, 6, 3, 7};
  for (int row = 0; row < 8; ++row) {
    CHECK(defined_weight(matrix, row, row) == 2 * (places[row] - 1));
  }
  CHECK(contains(source.matrix_error("a.weight", 16, 16).message, "awq codes of 4 bits"));
  CHECK(contains(source.matrix_error("a.weight", 8, 8).message, "awq codes of 4 bits"));
}

TEST_CASE("codes of an unknown kind are refused with what is supported") {
  const MemorySource source(MemorySafetensors()
                                .filled("int8.weight", "I8", {2, 8}, int8_t{1})
                                .filled("int8.weight_scale", "F32", {2, 1}, 1.0f)
                                .filled("bytes.weight", "U8", {8, 1}, uint8_t{1})
                                .filled("e5m2.weight", "F8_E5M2", {2, 8}, uint8_t{1}));
  const Error error = source.matrix_error("int8.weight", 2, 8);
  CHECK(error.code == ErrorCode::kUnsupported);
  CHECK(
      error.message.starts_with("the tensor int8.weight (I8 (2, 8)) is quantised in a way "
                                "unknown here; supported are: MLX"));
  CHECK(source.matrix_error("bytes.weight", 2, 8).code == ErrorCode::kUnsupported);
  CHECK(source.matrix_error("e5m2.weight", 2, 8).message ==
        "tensor e5m2.weight has the dtype F8_E5M2, which lockstep cannot compute with");
}
