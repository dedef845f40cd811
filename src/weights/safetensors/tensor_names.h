// TensorNames: the stems under which a checkpoint may store a model's tensors. Checkpoints of
// multimodal models wrap the language model, embedding models omit "model.", MLX and gpt-oss stack
// a layer's experts. For SafetensorsSource. Immutable.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weights/safetensors/checkpoint.h"

namespace lockstep {

// gpt-oss keeps gate and up projection in one stack, with alternating rows; Qwen 3.5 the rows of
// the first before those of the second (then kEven and kOdd stand for the two halves).
struct FusedExpertStem {
  enum class Rows { kAll, kEven, kOdd };
  std::string stem;  // "model.layers.0.mlp.experts.gate_up_proj"
  Rows rows;
};

// A part of a tensor that is stored with others of one size, one after the other.
struct JoinedStem {
  std::string stem;
  size_t part;
  size_t parts;
};

class TensorNames {
 public:
  // Determines the naming from the embedding's name.
  explicit TensorNames(std::span<const TensorView> tensors);

  // For a draft layer in files of its own; `prefix` begins the names that are asked for.
  static TensorNames of_draft_layer(std::string_view prefix);

  // The possible stems of `stem` in the checkpoint, the likeliest first; also of a whole name.
  std::vector<std::string> stored(std::string_view stem) const;
  // MLX joins the convolutions of queries, keys and values.
  static std::optional<JoinedStem> joined_convolution(std::string_view stem);

 private:
  TensorNames() = default;
  void find_draft_layer(std::span<const TensorView> tensors);
  std::string layer_prefix(int layer) const;

  std::string_view asked_prefix_;
  std::string_view stored_prefix_;
  std::string draft_prefix_;  // of the names that are asked for; empty: nothing is kept apart
  std::string draft_root_;
  std::string alone_prefix_;  // of_draft_layer(); empty: of a model
};

// The name of an expert's projection in the stacks that MLX makes: "gate_proj" for MiniMax's "w1".
std::string_view stacked_projection(std::string_view projection);
// For "...experts.<stack_index>.gate_proj": the stems of the stacks that MLX makes of the experts.
// Empty for any other stem.
std::vector<std::string> expert_stack_stems(std::string_view stem, int stack_index);
// Whether families publish the matrix under this stem alone, without ".weight".
bool is_bare_matrix(std::string_view stem);
std::optional<FusedExpertStem> fused_expert_stem(std::string_view stem, int stack_index);

}  // namespace lockstep
