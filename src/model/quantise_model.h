// `lockstep quantize`: writes a model folder whose matrices are quantised, in the form that mlx_lm
// and lockstep itself read (safetensors, MLX affine, groups of 64). The folder appears whole or not
// at all. Of the weights no more than one matrix is in memory.
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
  std::filesystem::path to;    // is created
  int bits = 4;
  bool requantises = false;  // what is quantised already; else that is refused
  int threads = 1;
  uint64_t file_bytes_max = 0;  // of one safetensors file; 0: SafetensorsWriter's own
  // After each matrix: how many weights of how many are done, and what comes next.
  std::function<void(uint64_t done, uint64_t all, std::string_view next)> progress;
};

struct QuantisedTensor {
  std::string name;
  int bits = 0;  // 0: it stays as it is
  uint64_t weights = 0;
  double relative_rms = 0;  // error
  double largest_error = 0;
};

struct QuantiseReport {
  std::vector<QuantisedTensor> tensors;  // matrices: quantised ones from the worst error on, others
  double relative_rms = 0;               // over all that are quantised
  uint64_t weights = 0;                  // of all tensors
  uint64_t bytes_before = 0;
  uint64_t bytes_after = 0;

  double bits_per_weight() const {
    return weights == 0 ? 0 : static_cast<double>(bytes_after) * 8 / static_cast<double>(weights);
  }
};

// kInvalidArgument: `to` exists, or bits that there are not. kExhausted: too little disk. Others
// are those of the source and of the disk. After an error there is nothing at `to`.
Result<QuantiseReport> quantise_model(const QuantiseModelOptions& options);

}  // namespace lockstep
