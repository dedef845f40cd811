// Facts about quantisation in config.json that tensor shapes do not show. For SafetensorsSource and
// the readers of quantised_matrix.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "json/json.h"
#include "weights/quantised/mlx_quantisation.h"

namespace lockstep {

struct ScaleBlock {
  int64_t rows;
  int64_t columns;
};

struct QuantisationConfig {
  std::string method;                    // "quant_method"; empty: none, or MLX
  std::vector<ScaleBlock> fp8_blocks;    // that may share a scale; never empty
  bool has_gptq_v2_zero_points = false;  // "checkpoint_format" "gptq_v2": stored as they are
  MlxQuantisation mlx;
};

// "fp8, compressed-tensors, ...": the list in error sentences.
inline constexpr const char* kSupportedQuantisations =
    "MLX (affine, mxfp4, nvfp4, mxfp8), fp8, mxfp4, compressed-tensors, modelopt, gptq and awq";

// `config` is the whole config.json. kUnsupported names an unknown quantisation, kCorrupt a field
// of another type.
Result<QuantisationConfig> read_quantisation_config(const Json& config);

}  // namespace lockstep
