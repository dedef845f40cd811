// QuantisePlan: the tensors of a quantised checkpoint as mlx_lm names them, and the sources of
// each. For quantise_model.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/config/config.h"
#include "weights/safetensors/safetensors_writer.h"
#include "weights/source/quantising_source.h"

namespace lockstep {

// A matrix with its scales and biases, a stack of these (the experts of a layer), or a vector.
struct PlannedModule {
  std::string name;  // without ".weight": "model.layers.0.mlp.switch_mlp.gate_proj"
  bool is_vector = false;
  int bits = 0;  // 0: unchanged
  int rows = 0;
  int columns = 1;
  // The names of its parts in the source: one, or those of a stack in order.
  std::vector<std::string> parts;
  bool is_stack = false;
  size_t first_tensor = 0;  // in `tensors`: its values, or codes, scales and biases

  int stack_index(size_t part) const { return is_stack ? static_cast<int>(part) : -1; }
  uint64_t weights() const {
    return static_cast<uint64_t>(rows) * static_cast<uint64_t>(columns) * parts.size();
  }
};

struct QuantisePlan {
  std::vector<PlannedModule> modules;
  std::vector<PlannedTensor> tensors;
};

// `prefix` is put before all names ("language_model."). Errors are the source's.
Result<QuantisePlan> plan_quantised(const ModelConfig& config, const QuantisingSource& source,
                                    std::string_view prefix);

}  // namespace lockstep
