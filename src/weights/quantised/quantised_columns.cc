// GPTQ (https://github.com/AutoGPTQ/AutoGPTQ, qlinear_cuda.py) and AWQ
// (https://github.com/casper-hansen/AutoAWQ, packing_utils.py): the matrix is stored transposed.
#include <cstring>
#include <string>

#include "weights/quantised/quantised_matrix.h"

namespace lockstep {
namespace {

constexpr int64_t kColumnWordBits = 32;
constexpr int kAwqBits = 4;

// Whether every column c is in group c / group; each must be in an existing group.
Result<bool> are_groups_in_order(const TensorView& groups, int64_t columns, int group) {
  TRY(expect_dtype(groups, DType::kI32));
  TRY(expect_shape(groups, {columns}));
  TRY(expect_here(groups));
  bool is_in_order = true;
  for (int64_t column = 0; column < columns; ++column) {
    int32_t stored;
    std::memcpy(&stored, groups.bytes.data() + 4 * column, 4);
    if (stored < 0 || stored >= columns / group) {
      return Error{ErrorCode::kCorrupt, "the tensor " + groups.name + " puts column " +
                                            std::to_string(column) + " into group " +
                                            std::to_string(stored) + " of " +
                                            std::to_string(columns / group)};
    }
    if (stored != column / group) is_in_order = false;
  }
  return is_in_order;
}

// Scales (columns / group, rows), and zero points packed along the rows.
Status set_scales_and_zeros(const ModuleTensors& module, MatrixShape shape, StoredMatrix& matrix) {
  const TensorView scales = TRY(module.get(".scales"));
  TRY(expect_float(scales));
  if (scales.shape.size() != 2 || scales.shape[1] != shape.rows) {
    return misfit(scales, "a scale for each of " + std::to_string(shape.rows) + " rows");
  }
  matrix.group = TRY(columns_per_scale(scales, scales.shape[0], shape.columns));
  matrix.scales = scales.bytes;
  matrix.scale_type = scales.dtype;
  const TensorView zeros = TRY(module.get(".qzeros"));
  TRY(expect_dtype(zeros, DType::kI32));
  TRY(expect_shape(zeros, {scales.shape[0], shape.rows * matrix.bits / kColumnWordBits}));
  matrix.zeros = zeros.bytes;
  return Ok{};
}

Error odd_packing(const TensorView& codes, MatrixShape shape, std::string_view wanted) {
  return misfit(codes,
                std::string(wanted) + " for the shape " + shape_text({shape.rows, shape.columns}));
}

Result<int> gptq_bits(const TensorView& codes, MatrixShape shape) {
  for (const int bits : {4, 8}) {
    const int64_t codes_per_word = kColumnWordBits / bits;
    if (shape.columns % codes_per_word != 0 || shape.rows % codes_per_word != 0) continue;
    const std::vector<int64_t> expected = {shape.columns / codes_per_word, shape.rows};
    if (codes.shape == expected) return bits;
  }
  return odd_packing(codes, shape, "gptq codes of 4 or 8 bits");
}

}  // namespace

Result<StoredMatrix> gptq_matrix(const ModuleTensors& module, MatrixShape shape,
                                 const QuantisationConfig& config) {
  const TensorView codes = TRY(module.get(".qweight"));
  TRY(expect_dtype(codes, DType::kI32));
  StoredMatrix matrix = empty_matrix(StoredFormat::kGptq, shape);
  matrix.bits = TRY(gptq_bits(codes, shape));
  matrix.codes = codes.bytes;
  matrix.zero_bias = config.has_gptq_v2_zero_points ? 0 : 1;
  TRY(set_scales_and_zeros(module, shape, matrix));
  if (const auto groups = TRY(module.find(".g_idx"))) {
    const bool is_in_order = TRY(are_groups_in_order(*groups, shape.columns, matrix.group));
    if (!is_in_order) matrix.groups = groups->bytes;
  }
  return matrix;
}

Result<StoredMatrix> awq_matrix(const ModuleTensors& module, MatrixShape shape) {
  const TensorView codes = TRY(module.get(".qweight"));
  TRY(expect_dtype(codes, DType::kI32));
  const int64_t codes_per_word = kColumnWordBits / kAwqBits;
  const std::vector<int64_t> expected = {shape.columns, shape.rows / codes_per_word};
  if (shape.rows % codes_per_word != 0 || codes.shape != expected) {
    return odd_packing(codes, shape, "awq codes of 4 bits");
  }
  StoredMatrix matrix = empty_matrix(StoredFormat::kAwq, shape);
  matrix.bits = kAwqBits;
  matrix.codes = codes.bytes;
  TRY(set_scales_and_zeros(module, shape, matrix));
  return matrix;
}

}  // namespace lockstep
