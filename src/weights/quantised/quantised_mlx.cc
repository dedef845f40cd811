// The formats of mx.quantize: https://github.com/ml-explore/mlx, mlx/backend/cpu/quantized.cpp.
#include <string>

#include "weights/quantised/quantised_matrix.h"

namespace lockstep {
namespace {

constexpr int64_t kMlxWordBits = 32;

bool is_affine_width(int64_t bits) {
  return (bits >= 2 && bits <= 6) || bits == 8;
}

Result<int> code_bits(const TensorView& weight, MatrixShape shape) {
  if (weight.shape.size() == 2 && weight.shape[0] == shape.rows) {
    const int64_t packed_bits =
        weight.shape[1] <= shape.columns ? weight.shape[1] * kMlxWordBits : 0;
    const int64_t bits = packed_bits / shape.columns;
    if (packed_bits % shape.columns == 0 && is_affine_width(bits)) return static_cast<int>(bits);
  }
  return misfit(weight, "packed codes of 2, 3, 4, 5, 6 or 8 bits for the shape " +
                            shape_text({shape.rows, shape.columns}));
}

Status set_affine_biases(const ModuleTensors& module, const TensorView& scales,
                         StoredMatrix& matrix) {
  TRY(expect_float(scales));
  const TensorView biases = TRY(module.get(".biases"));
  TRY(expect_dtype(biases, scales.dtype));
  TRY(expect_shape(biases, scales.shape));
  matrix.scale_type = scales.dtype;
  matrix.biases = biases.bytes;
  return Ok{};
}

// Modes "mxfp4", "nvfp4" and "mxfp8" have one-byte scales and no biases.
Status set_float_mode(const TensorView& scales, StoredMatrix& matrix) {
  matrix.scale_type = DType::kF8E8M0;
  if (matrix.bits == 4 && matrix.group == 16) {
    matrix.format = StoredFormat::kFp4;
    matrix.scale_type = DType::kF8E4M3;
  } else if (matrix.bits == 4 && matrix.group == 32) {
    matrix.format = StoredFormat::kFp4;
  } else if (matrix.bits == 8 && matrix.group == 32) {
    matrix.format = StoredFormat::kFp8;
  } else {
    return Error{ErrorCode::kUnsupported,
                 "the tensor " + scales.name + " scales groups of " + std::to_string(matrix.group) +
                     " codes of " + std::to_string(matrix.bits) +
                     " bits; MLX's modes mxfp4, nvfp4 and mxfp8 have 32 of 4, 16 of 4 and 32 of 8"};
  }
  return Ok{};
}

}  // namespace

Result<StoredMatrix> mlx_matrix(const ModuleTensors& module, MatrixShape shape,
                                const QuantisationConfig& config) {
  const TensorView weight = TRY(module.get(".weight"));
  const TensorView scales = TRY(module.get(".scales"));
  TRY(expect_dtype(weight, DType::kU32));
  StoredMatrix matrix = empty_matrix(StoredFormat::kAffine, shape);
  matrix.bits = TRY(code_bits(weight, shape));
  matrix.codes = weight.bytes;
  matrix.row_bytes = static_cast<size_t>(weight.shape[1]) * dtype_bytes(weight.dtype);
  if (scales.shape.size() != 2 || scales.shape[0] != shape.rows) {
    return misfit(scales, "a row of scales for each of " + std::to_string(shape.rows) + " rows");
  }
  matrix.group = TRY(columns_per_scale(scales, scales.shape[1], shape.columns));
  matrix.scales = scales.bytes;
  if (scales.dtype == DType::kU8 && !module.has(".biases")) {
    TRY(set_float_mode(scales, matrix));
  } else {
    TRY(set_affine_biases(module, scales, matrix));
  }
  TRY(config.mlx.check(module.stem(), matrix));
  return matrix;
}

}  // namespace lockstep
