// ModuleTensors: the tensors of one linear layer of a checkpoint, which share a stem
// ("model.layers.0.mlp.gate_proj" + ".weight", ".scales", ...), or one matrix's parts of a stack of
// these. For the readers of quantised_matrix.h. Borrows the checkpoint.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "weights/safetensors/checkpoint.h"

namespace lockstep {

class ModuleTensors {
 public:
  // With a `stack_index`, the first dimension of every tensor counts the matrices of a stack, and
  // find() returns that matrix's part, or with kWholeStack all of them as one matrix, whose rows
  // are those of the first one, then those of the second one, and so on.
  static constexpr int kWholeStack = -2;
  ModuleTensors(const Checkpoint& checkpoint, std::string stem, int stack_index = -1)
      : checkpoint_(checkpoint), stem_(std::move(stem)), stack_index_(stack_index) {}

  const std::string& stem() const { return stem_; }
  std::string name(std::string_view suffix) const { return stem_ + std::string(suffix); }
  bool has(std::string_view suffix) const { return checkpoint_.has(name(suffix)); }
  // Nullopt if the tensor is missing; kUnsupported for an unknown dtype, kCorrupt for a stack
  // without that matrix.
  Result<std::optional<TensorView>> find(std::string_view suffix) const;
  // The same of what its parts share: "a.weight_scale" of "a.shard_3".
  Result<std::optional<TensorView>> find_shared(std::string_view suffix) const;
  // kCorrupt if the tensor is missing: for tensors that another one requires.
  Result<TensorView> get(std::string_view suffix) const;

 private:
  const Checkpoint& checkpoint_;
  std::string stem_;
  int stack_index_;
};

// "(2, 3)"
std::string shape_text(const std::vector<int64_t>& shape);
// kCorrupt: "the tensor NAME is F32 (2, 3) where WANTED is expected".
Error misfit(const TensorView& tensor, std::string_view wanted);
Status expect_shape(const TensorView& tensor, const std::vector<int64_t>& shape);
Status expect_dtype(const TensorView& tensor, DType dtype);
Status expect_float(const TensorView& tensor);
// kNotFound for a tensor that must be read now and is not completely on this machine.
Status expect_here(const TensorView& tensor);
// The only element, a float, of a tensor with no or one dimension.
Result<float> read_scalar(const TensorView& tensor);

}  // namespace lockstep
