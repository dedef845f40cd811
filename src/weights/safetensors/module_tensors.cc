#include "weights/safetensors/module_tensors.h"

#include <utility>

#include "tensor/half.h"

namespace lockstep {
namespace {

Result<TensorView> part_of_stack(TensorView tensor, int stack_index) {
  if (tensor.shape.empty()) return misfit(tensor, "a stack of matrices");
  const int64_t count = tensor.shape.front();
  if (stack_index >= count) {
    return misfit(tensor, "a stack with a matrix " + std::to_string(stack_index));
  }
  const size_t part_bytes = tensor.bytes.size() / static_cast<size_t>(count);
  tensor.bytes = tensor.bytes.subspan(static_cast<size_t>(stack_index) * part_bytes, part_bytes);
  tensor.shape.erase(tensor.shape.begin());
  tensor.name += "[" + std::to_string(stack_index) + "]";
  return tensor;
}

TensorView whole_stack(TensorView tensor) {
  if (tensor.shape.size() < 3) return tensor;
  tensor.shape[1] *= tensor.shape[0];
  tensor.shape.erase(tensor.shape.begin());
  return tensor;
}

}  // namespace

Result<std::optional<TensorView>> ModuleTensors::find(std::string_view suffix) const {
  const auto tensor = checkpoint_.tensor(name(suffix));
  if (!tensor.ok()) {
    if (tensor.error().code != ErrorCode::kNotFound) return tensor.error();
    return std::optional<TensorView>();
  }
  if (stack_index_ == kWholeStack) return std::optional(whole_stack(*tensor.value()));
  if (stack_index_ < 0) return std::optional(*tensor.value());
  return std::optional(TRY(part_of_stack(*tensor.value(), stack_index_)));
}

Result<std::optional<TensorView>> ModuleTensors::find_shared(std::string_view suffix) const {
  const size_t part = stem_.rfind(".shard_");
  if (part == std::string::npos) return std::optional<TensorView>();
  return ModuleTensors(checkpoint_, stem_.substr(0, part)).find(suffix);
}

Result<TensorView> ModuleTensors::get(std::string_view suffix) const {
  auto tensor = TRY(find(suffix));
  if (tensor) return std::move(*tensor);
  return Error{ErrorCode::kCorrupt,
               "the checkpoint has parts of " + stem_ + " but no tensor " + name(suffix)};
}

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text = "(";
  for (const int64_t size : shape) {
    if (text.size() > 1) text += ", ";
    text += std::to_string(size);
  }
  return text + ")";
}

Error misfit(const TensorView& tensor, std::string_view wanted) {
  return {ErrorCode::kCorrupt,
          "the tensor " + tensor.name + " is " + std::string(dtype_name(tensor.dtype)) + " " +
              shape_text(tensor.shape) + " where " + std::string(wanted) + " is expected"};
}

Status expect_shape(const TensorView& tensor, const std::vector<int64_t>& shape) {
  if (tensor.shape == shape) return Ok{};
  return misfit(tensor, "the shape " + shape_text(shape));
}

Status expect_dtype(const TensorView& tensor, DType dtype) {
  if (tensor.dtype == dtype) return Ok{};
  return misfit(tensor, dtype_name(dtype));
}

Status expect_float(const TensorView& tensor) {
  if (is_float(tensor.dtype)) return Ok{};
  return misfit(tensor, "F32, F16 or BF16");
}

Status expect_here(const TensorView& tensor) {
  if (tensor.is_here) return Ok{};
  return Error{ErrorCode::kNotFound,
               "the tensor " + tensor.name +
                   " is not on this machine, which keeps parts of the model's "
                   "files"};
}

Result<float> read_scalar(const TensorView& tensor) {
  TRY(expect_float(tensor));
  if (tensor.bytes.size() != dtype_bytes(tensor.dtype)) return misfit(tensor, "one element");
  TRY(expect_here(tensor));
  return load_element(tensor.bytes.data(), tensor.dtype, 0);
}

}  // namespace lockstep
