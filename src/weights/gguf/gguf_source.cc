#include "weights/gguf/gguf_source.h"

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tensor/ggml_blocks.h"
#include "tensor/stored_check.h"
#include "weights/gguf/gguf_names.h"

namespace lockstep {
namespace {

using RowMap = std::vector<int32_t>;

constexpr std::string_view kQueryEnding = ".attn_q.weight";
constexpr std::string_view kKeyEnding = ".attn_k.weight";

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

// Row `half * size / 2 + i` of a head of `size` rows is stored as row `2 * i + half`.
RowMap interleaved_heads(int32_t rows, int32_t heads) {
  RowMap map(static_cast<size_t>(rows));
  const int32_t size = rows / heads, half_size = size / 2;
  for (int32_t row = 0; row < rows; ++row) {
    const int32_t in_head = row % size;
    map[static_cast<size_t>(row)] = row - in_head + 2 * (in_head % half_size) + in_head / half_size;
  }
  return map;
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
  };

  Found find(std::string_view name, int stack_index) const;
  Status add_row_map(const GgufTensor& tensor);
  int64_t interleaved_head_count(std::string_view tensor_name) const;
  Status refuse_scale(const GgufTensor& tensor) const;

  GgufModel model_;
  bool interleaves_heads_ = false;
  int64_t query_heads_ = 0;
  int64_t key_heads_ = 0;
  // By head count and rows: only a few, since all layers are alike.
  std::map<std::pair<int64_t, uint64_t>, RowMap> row_maps_;
};

Status GgufSource::prepare() {
  const GgufArchitecture& architecture = *TRY(gguf_architecture(model_.metadata()));
  interleaves_heads_ = architecture.interleaves_heads;
  if (!interleaves_heads_) return Ok{};
  const std::string prefix = std::string(architecture.name) + ".attention.head_count";
  query_heads_ = TRY(model_.metadata().integer(prefix)).value_or(0);
  key_heads_ = TRY(model_.metadata().integer(prefix + "_kv")).value_or(query_heads_);
  if (query_heads_ < 1 || key_heads_ < 1) {
    return Error{ErrorCode::kCorrupt, "the GGUF value " + prefix + " must be positive"};
  }
  for (const GgufFile& part : model_.parts()) {
    for (const GgufTensor& tensor : part.tensors()) TRY(add_row_map(tensor));
  }
  return Ok{};
}

// 0 if the rows are stored in their normal order.
int64_t GgufSource::interleaved_head_count(std::string_view tensor_name) const {
  if (!interleaves_heads_) return 0;
  if (tensor_name.ends_with(kQueryEnding)) return query_heads_;
  return tensor_name.ends_with(kKeyEnding) ? key_heads_ : 0;
}

Status GgufSource::add_row_map(const GgufTensor& tensor) {
  const int64_t heads = interleaved_head_count(tensor.name);
  // A row has at least one byte, so the map is no larger than the file.
  if (heads == 0 || tensor.dimensions.size() < 2 || tensor.bytes.empty()) return Ok{};
  const uint64_t rows = tensor.dimensions[1];
  if (rows > INT32_MAX || heads > INT32_MAX / 2 || rows % static_cast<uint64_t>(2 * heads) != 0) {
    return Error{ErrorCode::kCorrupt, "tensor " + std::string(tensor.name) + " has " +
                                          std::to_string(rows) + " rows, which " +
                                          std::to_string(heads) + " heads cannot share"};
  }
  const auto [entry, is_new] = row_maps_.try_emplace({heads, rows});
  if (is_new) {
    entry->second = interleaved_heads(static_cast<int32_t>(rows), static_cast<int32_t>(heads));
  }
  return Ok{};
}

GgufSource::Found GgufSource::find(std::string_view name, int stack_index) const {
  for (const GgufPlace& place : gguf_places(name, stack_index)) {
    if (const GgufTensor* tensor = model_.tensor(place.tensor)) return {tensor, place.stack_index};
  }
  return {};
}

// Newer files may contain a separate factor for a whole matrix ("attn_q.scale"): NVFP4, BitNet.
Status GgufSource::refuse_scale(const GgufTensor& tensor) const {
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
  TRY(check_shape(tensor, {columns, rows}, found.stack_index));
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
  const size_t bytes = rows * matrix.row_bytes;
  matrix.codes = tensor.bytes.subspan(
      found.stack_index < 0 ? 0 : static_cast<size_t>(found.stack_index) * bytes, bytes);
  const auto map = row_maps_.find({interleaved_head_count(tensor.name), rows});
  if (map != row_maps_.end()) matrix.row_map = map->second;
  matrix.is_mapped_file = model_.is_mapped();
  return matrix;
}

Result<StoredVector> GgufSource::vector(std::string_view name, int stack_index, int size) const {
  const Found found = find(name, stack_index);
  if (found.tensor == nullptr) return no_tensor(name);
  const GgufTensor& tensor = *found.tensor;
  const auto type = plain_type(tensor.type_id);
  if (!type) return unsupported_type(tensor, false);
  TRY(check_shape(tensor, {static_cast<uint64_t>(size)}, found.stack_index));
  const bool is_interleaved = interleaves_heads_ && (tensor.name.ends_with(".attn_q.bias") ||
                                                     tensor.name.ends_with(".attn_k.bias"));
  if (is_interleaved) {
    return Error{ErrorCode::kUnsupported,
                 "tensor " + std::string(tensor.name) +
                     " is a bias whose heads are interleaved, which is not supported"};
  }
  const size_t bytes = static_cast<size_t>(size) * dtype_bytes(*type);
  const size_t begin = found.stack_index < 0 ? 0 : static_cast<size_t>(found.stack_index) * bytes;
  return StoredVector{*type, tensor.bytes.subspan(begin, bytes)};
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
