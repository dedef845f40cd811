// Readers of a matrix in the forms that safetensors checkpoints use. The tensors of a module show
// the format, and their shapes the widths and groups; every size is checked, so that a StoredMatrix
// never points outside its tensors. For SafetensorsSource.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.h"
#include "tensor/stored_matrix.h"
#include "weights/quantised/quantisation_config.h"
#include "weights/safetensors/module_tensors.h"

namespace lockstep {

// Possible names of the tensor with the codes, or with the elements themselves.
inline constexpr std::string_view kCodeSuffixes[] = {".weight", ".weight_packed", ".qweight"};

// The shape that the model needs, which the stored shapes must match. Both fit in an int.
struct MatrixShape {
  int64_t rows;
  int64_t columns;
};

// `module` has one of kCodeSuffixes. kCorrupt and kUnsupported as for WeightSource.
Result<StoredMatrix> read_matrix(const ModuleTensors& module, MatrixShape shape,
                                 const QuantisationConfig& config);

// Its steps, by file.

// Floats, (rows, columns).
Result<StoredMatrix> plain_matrix(const TensorView& weight, MatrixShape shape);
// mx.quantize: ".weight" U32 with ".scales", and ".biases" if affine.
Result<StoredMatrix> mlx_matrix(const ModuleTensors& module, MatrixShape shape,
                                const QuantisationConfig& config);
// ".weight" F8_E4M3 with ".weight_scale_inv", ".weight_scale", ".scale" or none of them.
Result<StoredMatrix> fp8_matrix(const ModuleTensors& module, MatrixShape shape,
                                const QuantisationConfig& config);
// compressed-tensors: ".weight_packed", integers in I32 or FP4 in U8.
Result<StoredMatrix> packed_matrix(const ModuleTensors& module, MatrixShape shape);
// modelopt: ".weight" U8 with two levels of scales.
Result<StoredMatrix> modelopt_fp4_matrix(const ModuleTensors& module, MatrixShape shape);
// DeepSeek V4's experts: ".weight" I8, two FP4 codes in each, with ".scale" F8_E8M0 by 32.
Result<StoredMatrix> deepseek_fp4_matrix(const ModuleTensors& module, MatrixShape shape);
// ".qweight", "qzeros", "scales" and perhaps "g_idx".
Result<StoredMatrix> gptq_matrix(const ModuleTensors& module, MatrixShape shape,
                                 const QuantisationConfig& config);
Result<StoredMatrix> awq_matrix(const ModuleTensors& module, MatrixShape shape);
// gpt-oss: the module is "...experts.gate_up_proj" with "_blocks" and "_scales". `row_map` as in
// StoredMatrix; with one, twice as many rows are stored as `shape` has.
Result<StoredMatrix> gpt_oss_matrix(const ModuleTensors& module, MatrixShape shape,
                                    std::span<const int32_t> row_map);

// A matrix of the format and shape, without parts.
StoredMatrix empty_matrix(StoredFormat format, MatrixShape shape);
// Columns that share one of the `count` scales of a row. They must divide the columns, and begin at
// whole bytes of codes.
Result<int> columns_per_scale(const TensorView& scales, int64_t count, int64_t columns);

}  // namespace lockstep
