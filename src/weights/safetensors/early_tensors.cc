#include "weights/safetensors/early_tensors.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "weights/safetensors/checkpoint.h"

namespace lockstep {

bool is_fused(const TensorView& tensor, std::string_view suffix) {
  constexpr std::string_view kFusedStack = ".experts.gate_up_proj";
  return tensor.name.ends_with(std::string(kFusedStack).append(suffix));
}

bool is_read_early(const TensorView& tensor) {
  constexpr std::string_view kEarly[] = {".weight_scale_2", ".weight_global_scale", ".weight_shape",
                                         ".weight_g_idx", ".g_idx"};
  return is_fused(tensor, kFusedBias) ||
         std::any_of(std::begin(kEarly), std::end(kEarly),
                     [&](std::string_view ending) { return tensor.name.ends_with(ending); });
}

}  // namespace lockstep
