#include "weights/quantised/quantised_matrix.h"

#include <string>

namespace lockstep {
namespace {

// Eight codes fill whole bytes, whatever their width.
constexpr int64_t kGroupStep = 8;

Error unknown_storage(const TensorView& tensor) {
  return {ErrorCode::kUnsupported,
          "the tensor " + tensor.name + " (" + std::string(dtype_name(tensor.dtype)) + " " +
              shape_text(tensor.shape) +
              ") is quantised in a way unknown here; supported are: " + kSupportedQuantisations};
}

}  // namespace

Result<StoredMatrix> plain_matrix(const TensorView& weight, MatrixShape shape) {
  TRY(expect_shape(weight, {shape.rows, shape.columns}));
  StoredMatrix matrix = empty_matrix(StoredFormat::kPlain, shape);
  matrix.codes = weight.bytes;
  matrix.scale_type = weight.dtype;
  matrix.row_bytes = static_cast<size_t>(shape.columns) * dtype_bytes(weight.dtype);
  matrix.bits = static_cast<int>(8 * dtype_bytes(weight.dtype));
  return matrix;
}

Result<StoredMatrix> read_matrix(const ModuleTensors& module, MatrixShape shape,
                                 const QuantisationConfig& config) {
  if (module.has(".qweight")) {
    if (config.method == "gptq") return gptq_matrix(module, shape, config);
    if (config.method == "awq") return awq_matrix(module, shape);
    return unknown_storage(TRY(module.get(".qweight")));
  }
  if (module.has(".weight_packed")) return packed_matrix(module, shape);
  const TensorView weight = TRY(module.get(".weight"));
  if (module.has(".scales")) return mlx_matrix(module, shape, config);
  if (is_float(weight.dtype)) return plain_matrix(weight, shape);
  if (weight.dtype == DType::kF8E4M3) return fp8_matrix(module, shape, config);
  if (weight.dtype == DType::kU8 && module.has(".weight_scale_2")) {
    return modelopt_fp4_matrix(module, shape);
  }
  if (weight.dtype == DType::kI8 && module.has(".scale")) return deepseek_fp4_matrix(module, shape);
  return unknown_storage(weight);
}

StoredMatrix empty_matrix(StoredFormat format, MatrixShape shape) {
  StoredMatrix matrix;
  matrix.format = format;
  matrix.rows = static_cast<int>(shape.rows);
  matrix.columns = static_cast<int>(shape.columns);
  return matrix;
}

Result<int> columns_per_scale(const TensorView& scales, int64_t count, int64_t columns) {
  const bool divides = count > 0 && columns % count == 0;
  if (divides && columns / count % kGroupStep == 0) return static_cast<int>(columns / count);
  return misfit(scales, "a scale for each group, of a multiple of " + std::to_string(kGroupStep) +
                            ", of " + std::to_string(columns) + " columns");
}

}  // namespace lockstep
