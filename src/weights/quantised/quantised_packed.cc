// compressed-tensors: https://github.com/neuralmagic/compressed-tensors, compressors/quantized_
// compressors/{pack_quantized,nvfp4_quantized}.py; the FP4 of modelopt and gpt-oss differ in names.
#include <cmath>
#include <cstring>
#include <string>

#include "weights/quantised/quantised_matrix.h"

namespace lockstep {
namespace {

constexpr int64_t kWordBits = 32;
constexpr int64_t kMxGroup = 32;
constexpr int64_t kNvidiaGroup = 16;
constexpr int64_t kMxBlockBytes = kMxGroup / 2;

int64_t words_for(int64_t codes, int bits) {
  const int64_t codes_per_word = kWordBits / bits;
  return (codes + codes_per_word - 1) / codes_per_word;
}

Result<int> packed_bits(const TensorView& packed, MatrixShape shape) {
  for (const int bits : {4, 8}) {
    const std::vector<int64_t> expected = {shape.rows, words_for(shape.columns, bits)};
    if (packed.shape == expected) return bits;
  }
  return misfit(packed, "packed codes of 4 or 8 bits for the shape " +
                            shape_text({shape.rows, shape.columns}));
}

// One scale for the matrix, one per row, or one per group in a row.
Status set_integer_scales(const TensorView& scales, MatrixShape shape, StoredMatrix& matrix) {
  TRY(expect_float(scales));
  matrix.scales = scales.bytes;
  matrix.scale_type = scales.dtype;
  if (scales.bytes.size() == dtype_bytes(scales.dtype)) {
    matrix.row_group = 0;
    return Ok{};
  }
  if (scales.shape.size() != 2 || scales.shape[0] != shape.rows) {
    return misfit(scales, "a row of scales for each of " + std::to_string(shape.rows) + " rows");
  }
  if (scales.shape[1] == 1) return Ok{};
  matrix.group = TRY(columns_per_scale(scales, scales.shape[1], shape.columns));
  return Ok{};
}

Status set_zeros(const ModuleTensors& module, const TensorView& scales, StoredMatrix& matrix) {
  const auto zeros = TRY(module.find(".weight_zero_point"));
  if (!zeros) return Ok{};
  if (matrix.row_group == 0) {
    return Error{ErrorCode::kUnsupported, "the tensor " + zeros->name +
                                              " is a zero point for a whole matrix; supported "
                                              "are zero points for rows and groups"};
  }
  TRY(expect_dtype(*zeros, DType::kI32));
  TRY(expect_shape(*zeros, {words_for(matrix.rows, matrix.bits), scales.shape[1]}));
  matrix.zeros = zeros->bytes;
  return Ok{};
}

// The true shape, which packing hides if a row does not fill whole words.
Status check_stored_shape(const ModuleTensors& module, MatrixShape shape) {
  const auto stored = TRY(module.find(".weight_shape"));
  if (!stored) return Ok{};
  if (stored->shape != std::vector<int64_t>{2} ||
      (stored->dtype != DType::kI32 && stored->dtype != DType::kI64)) {
    return misfit(*stored, "two integers");
  }
  TRY(expect_here(*stored));
  int64_t sizes[2] = {};
  for (size_t i = 0; i < 2; ++i) {
    if (stored->dtype == DType::kI64) {
      std::memcpy(&sizes[i], stored->bytes.data() + 8 * i, 8);
    } else {
      int32_t size;
      std::memcpy(&size, stored->bytes.data() + 4 * i, 4);
      sizes[i] = size;
    }
  }
  if (sizes[0] == shape.rows && sizes[1] == shape.columns) return Ok{};
  return Error{ErrorCode::kCorrupt, "the tensor " + stored->name + " says " +
                                        shape_text({sizes[0], sizes[1]}) + " where " +
                                        shape_text({shape.rows, shape.columns}) + " is expected"};
}

// Activation ordering: columns in a different order from the groups. Files may list the normal
// order explicitly, or set it to -1.
Status check_column_groups(const ModuleTensors& module, MatrixShape shape, int group) {
  const auto groups = TRY(module.find(".weight_g_idx"));
  if (!groups) return Ok{};
  TRY(expect_dtype(*groups, DType::kI32));
  TRY(expect_shape(*groups, {shape.columns}));
  TRY(expect_here(*groups));
  for (int64_t column = 0; column < shape.columns; ++column) {
    int32_t stored;
    std::memcpy(&stored, groups->bytes.data() + 4 * column, 4);
    if (stored == -1 || stored == (group == 0 ? 0 : column / group)) continue;
    return Error{ErrorCode::kUnsupported, "the tensor " + groups->name +
                                              " orders columns by activation, which lockstep "
                                              "reads from gptq checkpoints only"};
  }
  return Ok{};
}

Result<StoredMatrix> packed_integers(const ModuleTensors& module, const TensorView& packed,
                                     MatrixShape shape) {
  TRY(expect_dtype(packed, DType::kI32));
  TRY(check_stored_shape(module, shape));
  const TensorView scales = TRY(module.get(".weight_scale"));
  StoredMatrix matrix = empty_matrix(StoredFormat::kPackedInt, shape);
  matrix.bits = TRY(packed_bits(packed, shape));
  matrix.codes = packed.bytes;
  matrix.row_bytes = static_cast<size_t>(packed.shape[1]) * dtype_bytes(packed.dtype);
  TRY(set_integer_scales(scales, shape, matrix));
  TRY(set_zeros(module, scales, matrix));
  TRY(check_column_groups(module, shape, matrix.group));
  return matrix;
}

// `codes` are pairs in bytes; groups are of 16 if the dtype of `scales` is E4M3, else of 32.
Result<StoredMatrix> fp4_matrix(const TensorView& codes, const TensorView& scales,
                                MatrixShape shape, float factor) {
  const bool is_nvidia = scales.dtype == DType::kF8E4M3;
  const int64_t group = is_nvidia ? kNvidiaGroup : kMxGroup;
  TRY(expect_dtype(codes, DType::kU8));
  if (!is_nvidia && scales.dtype != DType::kU8 && scales.dtype != DType::kF8E8M0) {
    return misfit(scales, "F8_E4M3, F8_E8M0 or U8");
  }
  if (shape.columns % group != 0) {
    return misfit(scales, "a scale for each " + std::to_string(group) + " of " +
                              std::to_string(shape.columns) + " columns");
  }
  TRY(expect_shape(codes, {shape.rows, shape.columns / 2}));
  TRY(expect_shape(scales, {shape.rows, shape.columns / group}));
  StoredMatrix matrix = empty_matrix(StoredFormat::kFp4, shape);
  matrix.codes = codes.bytes;
  matrix.row_bytes = static_cast<size_t>(shape.columns / 2);
  matrix.bits = 4;
  matrix.group = static_cast<int>(group);
  matrix.scale_type = is_nvidia ? DType::kF8E4M3 : DType::kF8E8M0;
  matrix.scales = scales.bytes;
  matrix.factor = factor;
  return matrix;
}

Result<float> read_factor(const TensorView& tensor) {
  const float factor = TRY(read_scalar(tensor));
  if (std::isfinite(factor) && factor > 0) return factor;
  return Error{ErrorCode::kCorrupt,
               "the tensor " + tensor.name + " is not a valid scale: " + std::to_string(factor)};
}

}  // namespace

Result<StoredMatrix> packed_matrix(const ModuleTensors& module, MatrixShape shape) {
  const TensorView packed = TRY(module.get(".weight_packed"));
  if (packed.dtype != DType::kU8) return packed_integers(module, packed, shape);
  float factor = 1;
  if (const auto global = TRY(module.find(".weight_global_scale"))) {
    factor = 1 / TRY(read_factor(*global));
  }
  return fp4_matrix(packed, TRY(module.get(".weight_scale")), shape, factor);
}

Result<StoredMatrix> modelopt_fp4_matrix(const ModuleTensors& module, MatrixShape shape) {
  const float factor = TRY(read_factor(TRY(module.get(".weight_scale_2"))));
  const TensorView scales = TRY(module.get(".weight_scale"));
  TRY(expect_dtype(scales, DType::kF8E4M3));
  return fp4_matrix(TRY(module.get(".weight")), scales, shape, factor);
}

Result<StoredMatrix> deepseek_fp4_matrix(const ModuleTensors& module, MatrixShape shape) {
  const TensorView scales = TRY(module.get(".scale"));
  TensorView codes = TRY(module.get(".weight"));
  TRY(expect_dtype(scales, DType::kF8E8M0));
  TRY(expect_dtype(codes, DType::kI8));
  codes.dtype = DType::kU8;  // two codes in a byte, whose sign means nothing
  return fp4_matrix(codes, scales, shape, 1);
}

Result<StoredMatrix> gpt_oss_matrix(const ModuleTensors& module, MatrixShape shape,
                                    std::span<const int32_t> row_map) {
  TensorView blocks = TRY(module.get("_blocks"));
  const TensorView scales = TRY(module.get("_scales"));
  TRY(expect_dtype(scales, DType::kU8));
  const int64_t stored_rows = row_map.empty() ? shape.rows : 2 * shape.rows;
  TRY(expect_shape(blocks, {stored_rows, shape.columns / kMxGroup, kMxBlockBytes}));
  blocks.shape = {stored_rows, shape.columns / 2};
  StoredMatrix matrix = TRY(fp4_matrix(blocks, scales, {stored_rows, shape.columns}, 1));
  matrix.rows = static_cast<int>(shape.rows);
  matrix.row_map = row_map;
  return matrix;
}

}  // namespace lockstep
