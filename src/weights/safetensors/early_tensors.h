// Which tensors of a safetensors checkpoint are read before anybody asks for a weight, and the
// names of the stacks in which gpt-oss fuses gate and up projections. Stateless; any thread.
#pragma once

#include <string_view>

namespace lockstep {

struct TensorView;

inline constexpr std::string_view kFusedBlocks = "_blocks";
inline constexpr std::string_view kFusedBias = "_bias";

// Whether the name is that of a fused stack with this suffix.
bool is_fused(const TensorView& tensor, std::string_view suffix);

// Whether a source reads this tensor to learn how others are stored, before its weights are
// requested: factors of whole matrices, true shapes, column orders, biases that must be split.
bool is_read_early(const TensorView& tensor);

}  // namespace lockstep
