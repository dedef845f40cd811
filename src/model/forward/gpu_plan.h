// The cost of one token on a GPU, from the plan alone: no GPU is needed, and no weights are read.
// For `lockstep bench --explain-device` and tests.
#pragma once

#include <memory>
#include <vector>

#include "device/gpu/plan_device.h"
#include "model/config/config.h"
#include "weights/weight_source.h"

namespace lockstep {

struct GpuTokenPlan {
  std::vector<gpu::DispatchCounts> layers;  // the first one has the embedding's too
  gpu::DispatchCounts others;               // the last norm, the logits
  uint64_t needed_bytes = 0;                // weights, and keys and values, that a token must read

  gpu::DispatchCounts sum() const;  // without the list of kernels
};

// Plans a token at `position` of one sequence, on one GPU that has the whole model.
Result<GpuTokenPlan> plan_token_on_gpu(const ModelConfig& config,
                                       std::shared_ptr<const WeightSource> source, int position);

}  // namespace lockstep
