// E4M3 weights: as published by DeepSeek (blocks), Mistral (one scale per matrix),
// compressed-tensors "float-quantized" (one scale per row) and OCP MXFP8 (groups of 32 in a row).
#include <optional>
#include <string>

#include "weights/quantised/quantised_matrix.h"

namespace lockstep {
namespace {

constexpr int64_t kFp8MxGroup = 32;

// The scale of a matrix stored without any, as after a mere cast to E4M3.
std::span<const std::byte> scale_of_one() {
  static constexpr float kOne = 1.0f;
  return std::as_bytes(std::span(&kOne, 1));
}

int64_t rounded_up(int64_t size, int64_t step) {
  return (size + step - 1) / step;
}

bool is_one(const TensorView& scales) {
  return scales.bytes.size() == dtype_bytes(scales.dtype);
}

bool is_for_rows(const TensorView& scales, MatrixShape shape) {
  return scales.shape == std::vector<int64_t>{shape.rows} ||
         scales.shape == std::vector<int64_t>{shape.rows, 1};
}

std::optional<ScaleBlock> block_of(const TensorView& scales, MatrixShape shape,
                                   const QuantisationConfig& config) {
  for (const ScaleBlock& block : config.fp8_blocks) {
    const std::vector<int64_t> expected = {rounded_up(shape.rows, block.rows),
                                           rounded_up(shape.columns, block.columns)};
    if (scales.shape == expected) return block;
  }
  return std::nullopt;
}

Status set_scales(const TensorView& scales, MatrixShape shape, const QuantisationConfig& config,
                  StoredMatrix& matrix) {
  const bool is_exponent = scales.dtype == DType::kU8 || scales.dtype == DType::kF8E8M0;
  if (!is_exponent) TRY(expect_float(scales));
  matrix.scales = scales.bytes;
  matrix.scale_type = is_exponent ? DType::kF8E8M0 : scales.dtype;
  if (is_one(scales)) {
    matrix.row_group = 0;
    return Ok{};
  }
  if (is_for_rows(scales, shape)) return Ok{};
  if (const auto block = block_of(scales, shape, config)) {
    matrix.row_group = static_cast<int>(block->rows);
    matrix.group = static_cast<int>(block->columns);
    return Ok{};
  }
  const std::vector<int64_t> groups = {shape.rows, shape.columns / kFp8MxGroup};
  if (is_exponent && shape.columns % kFp8MxGroup == 0 && scales.shape == groups) {
    matrix.group = kFp8MxGroup;
    return Ok{};
  }
  const ScaleBlock& block = config.fp8_blocks.front();
  return misfit(scales, "one scale, one for each row or one for each block of " +
                            shape_text({block.rows, block.columns}) + " of " +
                            shape_text({shape.rows, shape.columns}));
}

}  // namespace

Result<StoredMatrix> fp8_matrix(const ModuleTensors& module, MatrixShape shape,
                                const QuantisationConfig& config) {
  const TensorView weight = TRY(module.get(".weight"));
  TRY(expect_dtype(weight, DType::kF8E4M3));
  TRY(expect_shape(weight, {shape.rows, shape.columns}));
  StoredMatrix matrix = empty_matrix(StoredFormat::kFp8, shape);
  matrix.codes = weight.bytes;
  matrix.row_bytes = static_cast<size_t>(shape.columns);
  matrix.bits = 8;
  auto scales = TRY(module.find(".weight_scale_inv"));
  if (!scales) scales = TRY(module.find(".weight_scale"));
  if (!scales) scales = TRY(module.find(".scale"));
  if (!scales) scales = TRY(module.find_shared(".weight_scale"));
  if (scales) {
    TRY(set_scales(*scales, shape, config, matrix));
  } else if (!config.method.empty()) {
    return Error{ErrorCode::kCorrupt, "the checkpoint is quantised (" + config.method +
                                          ") but has no scales for " + module.name(".weight")};
  } else {
    matrix.scales = scale_of_one();
    matrix.row_group = 0;
  }
  return matrix;
}

}  // namespace lockstep
