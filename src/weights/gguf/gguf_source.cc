#include "weights/gguf/gguf_source.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tensor/ggml_blocks.h"
#include "tensor/stored_check.h"
#include "tensor/stored_codes.h"
#include "weights/gguf/gguf_names.h"
#include "weights/gguf/gguf_order.h"

namespace lockstep {
namespace {

// The logarithms of rates of decay, of which files have minus the rates.
constexpr std::string_view kLogarithmEnding = ".A_log";

// Nullopt for quantised tensors and for types that lockstep does not compute with.
std::optional<DType> plain_type(uint32_t type_id) {
  return plain_element_type({.format = StoredFormat::kGguf, .gguf_type = type_id});
}

Error unsupported_type(const GgufTensor& tensor, bool takes_blocks) {
  const auto block = gguf_block(tensor.type_id);
  const std::string type = block ? std::string(block->name) : std::to_string(tensor.type_id);
  std::string supported;
  for (const GgmlBlock& known : kGgmlBlocks) {
    if (known.bits > 0 && !takes_blocks) continue;  // no plain elements
    supported += (supported.empty() ? "" : ", ") + std::string(known.name);
  }
  return {ErrorCode::kUnsupported, "tensor " + std::string(tensor.name) + " has the type " + type +
                                       "; supported are: " + supported};
}

// In Hugging Face's order, with the contiguous dimension last.
std::string dimensions_text(const std::vector<uint64_t>& dimensions) {
  std::string text;
  for (auto dimension = dimensions.rbegin(); dimension != dimensions.rend(); ++dimension) {
    text += (text.empty() ? "" : ", ") + std::to_string(*dimension);
  }
  return "[" + text + "]";
}

// `wanted` is in the format's order; a stack has one more dimension. Trailing dimensions of 1 may
// be omitted.
Status check_shape(const GgufTensor& tensor, const std::vector<uint64_t>& wanted, int stack_index) {
  const auto dimension = [&](size_t i) {
    return i < tensor.dimensions.size() ? tensor.dimensions[i] : uint64_t{1};
  };
  bool fits = true;
  for (size_t i = 0; i < wanted.size(); ++i) fits = fits && dimension(i) == wanted[i];
  const uint64_t stacked = dimension(wanted.size());
  fits = fits && (stack_index < 0 ? stacked == 1 : stacked > static_cast<uint64_t>(stack_index));
  for (size_t i = wanted.size() + 1; i < kGgufDimensionsMax; ++i) fits = fits && dimension(i) == 1;
  if (fits) return Ok{};
  std::string message = "tensor " + std::string(tensor.name) + " has the shape " +
                        dimensions_text(tensor.dimensions) + ", but " + dimensions_text(wanted);
  if (stack_index >= 0) message += " at place " + std::to_string(stack_index) + " of a stack";
  return Error{ErrorCode::kCorrupt, message + " is asked for"};
}

// ".ssm_conv1d.weight" of all inputs, or ".ssm_conv1d_q.weight" and others of some.
bool is_convolution(const GgufTensor& tensor) {
  return tensor.name.find(".ssm_conv1d") != std::string_view::npos;
}

// DeepSeek V4's experts of each token id, which are integers, and the offsets of each position of
// an entry.
bool holds_integers(const GgufTensor& tensor) {
  constexpr uint32_t kI32 = 26;  // among GGUF's types
  return tensor.type_id == kI32 && tensor.name.ends_with(".ffn_gate_tid2eid.weight");
}
bool is_table(const GgufTensor& tensor) {
  return holds_integers(tensor) || tensor.name.ends_with("_compressor_ape.weight");
}

// A convolution has a row of taps for each channel. Kimi Linear's have one more dimension, of 1,
// between them, and its rates of decay have one before the heads.
std::vector<uint64_t> shape_of_vector(const GgufTensor& tensor, uint64_t size) {
  const std::vector<uint64_t>& dimensions = tensor.dimensions;
  if (dimensions.size() < 2) return {size};
  if (is_table(tensor) && dimensions[0] > 0 && size % dimensions[0] == 0) {
    return {dimensions[0], size / dimensions[0]};
  }
  const uint64_t taps = is_convolution(tensor) ? dimensions[0] : 0;
  if (taps > 0 && size % taps == 0) {
    if (dimensions.size() == 2) return {taps, size / taps};
    return {taps, 1, size / taps};
  }
  if (dimensions[0] == 1 && dimensions[1] == size) return {1, size};
  return {size};
}

class GgufSource final : public WeightSource {
 public:
  explicit GgufSource(GgufModel model) : model_(std::move(model)) {}

  Status prepare();
  Result<StoredMatrix> matrix(const MatrixRequest& request) const override;
  Result<StoredVector> vector(std::string_view name, int stack_index, int size) const override;
  std::vector<int64_t> shape_of(std::string_view /*name*/) const override { return {}; }
  bool has(std::string_view name, int stack_index) const override;
  uint64_t file_bytes() const override { return model_.file_bytes(); }

 private:
  struct Found {
    const GgufTensor* tensor = nullptr;
    int stack_index = -1;
    GgufPlace::Half half = GgufPlace::Half::kNone;
  };

  Found find(std::string_view name, int stack_index) const;
  Status refuse_scale(const GgufTensor& tensor) const;
  Status order_columns(const GgufTensor& tensor, StoredMatrix& matrix) const;

  GgufModel model_;
  GgufOrder order_;
  bool has_named_scales_ = false;
  int64_t layers_ = 0;  // before those that predict further tokens
};

Status GgufSource::prepare() {
  const GgufArchitecture& architecture = *TRY(gguf_architecture(model_.metadata()));
  order_ = TRY(GgufOrder::of(model_, architecture));
  has_named_scales_ = architecture.has_named_scales;
  layers_ = TRY(gguf_layers(model_, architecture)).own;
  return Ok{};
}

GgufSource::Found GgufSource::find(std::string_view name, int stack_index) const {
  for (const GgufPlace& place : gguf_places(name, stack_index, layers_)) {
    const GgufTensor* tensor = model_.tensor(place.tensor);
    if (tensor != nullptr) return {tensor, place.stack_index, place.half};
  }
  return {};
}

// Newer files may contain a separate factor for a whole matrix ("attn_q.scale"): NVFP4, BitNet.
Status GgufSource::refuse_scale(const GgufTensor& tensor) const {
  if (has_named_scales_) return Ok{};
  constexpr std::string_view kEnding = ".weight";
  if (!tensor.name.ends_with(kEnding)) return Ok{};
  const std::string_view stem = tensor.name.substr(0, tensor.name.size() - kEnding.size());
  const std::string scale = std::string(stem) + ".scale";
  if (model_.tensor(scale) == nullptr) return Ok{};
  return Error{ErrorCode::kUnsupported, "tensor " + std::string(tensor.name) +
                                            " has a scale of its own, " + scale +
                                            ", which is not supported"};
}

Result<StoredMatrix> GgufSource::matrix(const MatrixRequest& request) const {
  const Found found = find(request.name, request.stack_index);
  if (found.tensor == nullptr) return no_tensor(request.name);
  const GgufTensor& tensor = *found.tensor;
  const auto plain = plain_type(tensor.type_id);
  if (find_ggml_block(tensor.type_id) == nullptr) return unsupported_type(tensor, true);
  const auto rows = static_cast<uint64_t>(request.rows);
  const auto columns = static_cast<uint64_t>(request.columns);
  const bool is_half = found.half != GgufPlace::Half::kNone;
  const uint64_t stored_rows = is_half ? 2 * rows : order_.stored_rows(request.name, tensor, rows);
  TRY(check_shape(tensor, {columns, stored_rows}, found.stack_index));
  TRY(refuse_scale(tensor));

  StoredMatrix matrix;
  matrix.format = plain ? StoredFormat::kPlain : StoredFormat::kGguf;
  matrix.rows = request.rows;
  matrix.columns = request.columns;
  matrix.scale_type = plain.value_or(DType::kF32);
  matrix.gguf_type = tensor.type_id;
  // The parser has checked that a row is whole blocks and that all of them are in the file.
  const GgufBlock block = *gguf_block(tensor.type_id);
  matrix.row_bytes = columns / block.elements * block.bytes;
  const size_t bytes = stored_rows * matrix.row_bytes;
  size_t begin = found.stack_index < 0 ? 0 : static_cast<size_t>(found.stack_index) * bytes;
  if (found.half == GgufPlace::Half::kSecond) begin += bytes / 2;
  matrix.codes = tensor.bytes.subspan(begin, is_half ? bytes / 2 : bytes);
  matrix.row_map = order_.rows_of(request.name, tensor);
  TRY(order_columns(tensor, matrix));
  matrix.is_mapped_file = model_.is_mapped();
  return matrix;
}

// Blocks that have columns of two groups would have to be taken apart.
Status GgufSource::order_columns(const GgufTensor& tensor, StoredMatrix& matrix) const {
  const GgufOrder::Columns columns = order_.columns_of(tensor);
  matrix.column_map = columns.map;
  matrix.column_group = columns.group;
  if (matrix.format == StoredFormat::kPlain || columns.group % kRunColumns == 0) return Ok{};
  return Error{ErrorCode::kUnsupported,
               "tensor " + std::string(tensor.name) + " has value heads of " +
                   std::to_string(columns.group) + " columns in the type " +
                   std::string(find_ggml_block(tensor.type_id)->name) + ": only multiples of " +
                   std::to_string(kRunColumns) + " are supported there"};
}

Result<StoredVector> GgufSource::vector(std::string_view name, int stack_index, int size) const {
  const Found found = find(name, stack_index);
  if (found.tensor == nullptr) return no_tensor(name);
  const GgufTensor& tensor = *found.tensor;
  auto type = plain_type(tensor.type_id);
  if (holds_integers(tensor)) type = DType::kI32;
  if (!type) return unsupported_type(tensor, false);
  TRY(check_shape(tensor, shape_of_vector(tensor, static_cast<uint64_t>(size)), found.stack_index));
  if (order_.is_interleaved_bias(tensor)) {
    return Error{ErrorCode::kUnsupported,
                 "tensor " + std::string(tensor.name) +
                     " is a bias whose heads are interleaved, which is not supported"};
  }
  const size_t bytes = static_cast<size_t>(size) * dtype_bytes(*type);
  const size_t begin = found.stack_index < 0 ? 0 : static_cast<size_t>(found.stack_index) * bytes;
  const std::span<const std::byte> elements = order_.elements_of(tensor).value_or(tensor.bytes);
  return StoredVector{*type, elements.subspan(begin, bytes), name.ends_with(kLogarithmEnding)};
}

bool GgufSource::has(std::string_view name, int stack_index) const {
  const Found found = find(name, stack_index);
  if (found.tensor == nullptr || found.stack_index < 0) return found.tensor != nullptr;
  const auto& dimensions = found.tensor->dimensions;
  const size_t stacked = found.tensor->name.ends_with(".bias") ? 1 : 2;
  const uint64_t count = stacked < dimensions.size() ? dimensions[stacked] : 1;
  return static_cast<uint64_t>(found.stack_index) < count;
}

}  // namespace

Result<std::shared_ptr<const WeightSource>> open_gguf_source(const std::filesystem::path& path) {
  auto source = make_gguf_source(TRY(GgufModel::open(path)));
  if (source.ok()) return source;
  return Error{source.error().code, path.string() + ": " + source.error().message};
}

Result<std::shared_ptr<const WeightSource>> make_gguf_source(GgufModel model) {
  auto source = std::make_shared<GgufSource>(std::move(model));
  TRY(source->prepare());
  return std::shared_ptr<const WeightSource>(std::move(source));
}

}  // namespace lockstep
