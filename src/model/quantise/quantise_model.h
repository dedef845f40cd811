// `lockstep quantize`: writes a model folder with quantised matrices, in the form that mlx_lm and
// lockstep itself read (safetensors, MLX affine, groups of 64). The folder appears whole or not at
// all. At most one weight matrix is in memory at a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace lockstep {

struct QuantiseModelOptions {
  std::filesystem::path from;  // a folder with config.json
  std::filesystem::path to;    // will be created
  int bits = 4;
  bool requantises = false;  // also matrices that are quantised already; else refused
  int threads = 1;
  uint64_t file_bytes_max = 0;  // per safetensors file; 0: SafetensorsWriter's default
  // After each matrix: weights done, weights in all, and the next name.
  std::function<void(uint64_t done, uint64_t all, std::string_view next)> progress;
};

struct QuantisedTensor {
  std::string name;
  int bits = 0;  // 0: unchanged
  uint64_t weights = 0;
  double relative_rms = 0;  // error
  double largest_error = 0;
};

struct QuantiseReport {
  std::vector<QuantisedTensor> tensors;  // matrices: quantised by falling error, then others
  double relative_rms = 0;               // over all quantised ones
  uint64_t weights = 0;                  // of all tensors
  uint64_t bytes_before = 0;
  uint64_t bytes_after = 0;
  std::string draft_problem{};  // why the model's draft layer is left out; empty: it is not

  double bits_per_weight() const {
    return weights == 0 ? 0 : static_cast<double>(bytes_after) * 8 / static_cast<double>(weights);
  }
};

// kInvalidArgument: `to` exists, or unsupported bits. kExhausted: too little disk space. Other
// errors come from the source and the disk. After an error `to` does not exist.
Result<QuantiseReport> quantise_model(const QuantiseModelOptions& options);

}  // namespace lockstep
