#include "weights/source/safetensors_source.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "base/files/mapped_file.h"
#include "json/json_file.h"
#include "weights/quantised/quantised_matrix.h"
#include "weights/safetensors/early_tensors.h"
#include "weights/source/transposed_experts.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kFusedRowsMax = 1 << 20;
constexpr size_t kSplitBytesMax = 1 << 30;
constexpr int64_t kJoinedElementsMax = 1 << 30;

struct SplitName {
  std::string_view stem;    // "model.layers.0.self_attn.q_proj"
  std::string_view suffix;  // ".bias"
};

SplitName split_name(std::string_view name) {
  const size_t dot = std::min(name.rfind('.'), name.size());
  return {name.substr(0, dot), name.substr(dot)};
}

// Whether these are the elements of one row: of a convolution by channel, with dimensions of 1
// around it, or of a table that is no layer's weight.
bool is_row(std::span<const int64_t> shape, int size, std::string_view suffix) {
  int64_t count = 1;
  size_t long_ones = 0;
  for (const int64_t extent : shape) {
    if (extent < 1 || extent > size) return false;
    count *= extent;
    long_ones += extent > 1 ? 1 : 0;
    if (count > size) return false;
  }
  const bool is_convolution = shape.size() == 3 && long_ones == 2 && shape[0] > 1;
  const bool is_table = shape.size() == 2 && suffix != ".weight" && suffix != ".bias";
  return count == size && (long_ones <= 1 || is_convolution || is_table);
}

// DeepSeek V4's experts of each token id.
bool is_table_of_integers(const TensorView& tensor, std::string_view suffix) {
  return suffix == ".tid2eid" && (tensor.dtype == DType::kI64 || tensor.dtype == DType::kI32);
}

// Constants of n-grams, which floats would round.
bool needs_whole_integers(std::string_view suffix) {
  return suffix == ".layer_multipliers" || suffix == ".ngram_heads_vocab_sizes" ||
         suffix == ".ngram_heads_offsets";
}

Result<StoredVector> row_of(const TensorView& tensor, int size, std::string_view suffix) {
  if (needs_whole_integers(suffix)) {
    TRY(expect_dtype(tensor, DType::kI64));
  } else if (!is_table_of_integers(tensor, suffix)) {
    TRY(expect_float(tensor));
  }
  if (!is_row(tensor.shape, size, suffix)) TRY(expect_shape(tensor, {size}));
  return StoredVector{tensor.dtype, tensor.bytes};
}

// The shape of an expert in a stack of all gates' rows and then all ups', or of down projections.
std::vector<int64_t> stacked_shape(const FusedExpertStem& fused, const MatrixRequest& request) {
  const int64_t halves = fused.rows == FusedExpertStem::Rows::kAll ? 1 : 2;
  return {halves * request.rows, request.columns};
}

Result<Json> read_config(const fs::path& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return Json(JsonObject());
  return read_json_file(path);
}

}  // namespace

Result<std::shared_ptr<const WeightSource>> SafetensorsSource::open(const fs::path& folder,
                                                                    PartialFiles partial) {
  auto checkpoint = TRY(Checkpoint::open(folder, partial));
  return over(std::move(checkpoint), TRY(read_config(folder / "config.json")));
}

Result<std::shared_ptr<const WeightSource>> SafetensorsSource::over(
    std::shared_ptr<const Checkpoint> checkpoint, const Json& config) {
  TensorNames names(checkpoint->tensors());
  return over(std::move(checkpoint), config, std::move(names));
}

Result<std::shared_ptr<const WeightSource>> SafetensorsSource::over(
    std::shared_ptr<const Checkpoint> checkpoint, const Json& config, TensorNames names) {
  auto quantisation = TRY(read_quantisation_config(config));
  std::unique_ptr<SafetensorsSource> source(
      new SafetensorsSource(std::move(checkpoint), std::move(quantisation), std::move(names)));
  TRY(source->split_fused_experts());
  return std::shared_ptr<const WeightSource>(std::move(source));
}

SafetensorsSource::SafetensorsSource(std::shared_ptr<const Checkpoint> checkpoint,
                                     QuantisationConfig config, TensorNames names)
    : checkpoint_(std::move(checkpoint)), config_(std::move(config)), names_(std::move(names)) {
  for (const MappedFile& file : checkpoint_->files()) files_.push_back(&file);
}

Result<StoredMatrix> SafetensorsSource::matrix(const MatrixRequest& request) const {
  LOCKSTEP_CHECK(request.rows > 0 && request.columns > 0);
  const SplitName name = split_name(request.name);
  LOCKSTEP_CHECK(name.suffix == ".weight");
  const auto module = find_module(name.stem, request.stack_index, kCodeSuffixes, 2);
  if (module) {
    StoredMatrix stored = TRY(read_matrix(*module, {request.rows, request.columns}, config_));
    stored.is_mapped_file = checkpoint_->is_mapped();
    return stored;
  }
  if (const auto fused = find_fused(name.stem, request.stack_index, kFusedBlocks)) {
    return fused_matrix(*fused, request);
  }
  if (const auto fused = find_fused(name.stem, request.stack_index, "")) {
    return transposed_matrix(*fused, request);
  }
  if (const TensorView* bare = find_bare(name.stem)) {
    TRY(expect_float(*bare));
    StoredMatrix stored = TRY(plain_matrix(*bare, {request.rows, request.columns}));
    stored.is_mapped_file = checkpoint_->is_mapped();
    return stored;
  }
  if (const auto joined = find_joined(name.stem, name.suffix)) {
    return misfit(TRY(ModuleTensors(*checkpoint_, joined->stem).get(name.suffix)), "a matrix");
  }
  return no_tensor(request.name);
}

Result<StoredVector> SafetensorsSource::vector(std::string_view name, int stack_index,
                                               int size) const {
  LOCKSTEP_CHECK(size > 0);
  const auto [stem, suffix] = split_name(name);
  if (const auto module = find_module(stem, stack_index, std::span(&suffix, 1), 1)) {
    return row_of(TRY(module->get(suffix)), size, suffix);
  }
  if (suffix == ".bias") {
    if (const auto fused = find_fused(stem, stack_index, kFusedBias)) {
      return fused_bias(*fused, stack_index, size);
    }
  }
  if (const auto joined = find_joined(stem, suffix)) return joined_vector(*joined, suffix, size);
  if (const TensorView* bare = find_bare(name)) return row_of(*bare, size, suffix);
  return no_tensor(name);
}

Result<StoredVector> SafetensorsSource::joined_vector(const JoinedStem& joined,
                                                      std::string_view suffix, int size) const {
  const TensorView tensor = TRY(ModuleTensors(*checkpoint_, joined.stem).get(suffix));
  TRY(expect_float(tensor));
  const int64_t all = int64_t{size} * static_cast<int64_t>(joined.parts);
  const bool divides =
      !tensor.shape.empty() && tensor.shape[0] % static_cast<int64_t>(joined.parts) == 0;
  if (!divides || all > kJoinedElementsMax ||
      !is_row(tensor.shape, static_cast<int>(all), suffix)) {
    return misfit(tensor,
                  fmt::format("{} channels of each of {} convolutions", size, joined.parts));
  }
  const size_t bytes = tensor.bytes.size() / joined.parts;
  return StoredVector{tensor.dtype, tensor.bytes.subspan(joined.part * bytes, bytes)};
}

std::vector<int64_t> SafetensorsSource::shape_of(std::string_view name) const {
  const auto [stem, suffix] = split_name(name);
  const auto module = find_module(stem, -1, std::span(&suffix, 1), 1);
  if (module) {
    const auto tensor = checkpoint_->tensor(module->name(suffix));
    return tensor.ok() ? tensor.value()->shape : std::vector<int64_t>();
  }
  const auto joined = find_joined(stem, suffix);
  if (!joined) return {};
  const auto tensor = checkpoint_->tensor(joined->stem + std::string(suffix));
  if (!tensor.ok() || tensor.value()->shape.empty()) return {};
  std::vector<int64_t> shape = tensor.value()->shape;
  shape[0] /= static_cast<int64_t>(joined->parts);
  return shape;
}

bool SafetensorsSource::has(std::string_view name, int stack_index) const {
  const auto [stem, suffix] = split_name(name);
  if (suffix == ".weight") {
    return find_module(stem, stack_index, kCodeSuffixes, 2) ||
           find_fused(stem, stack_index, kFusedBlocks) || find_fused(stem, stack_index, "") ||
           find_bare(stem) != nullptr || find_joined(stem, suffix);
  }
  if (find_module(stem, stack_index, std::span(&suffix, 1), 1)) return true;
  if (suffix == ".bias" && find_fused(stem, stack_index, kFusedBias)) return true;
  return find_bare(name) != nullptr;
}

// The module that has a tensor with one of `suffixes`. `rank` is the tensor's own: with one
// dimension more it is a stack, even under the same name.
std::optional<ModuleTensors> SafetensorsSource::find_module(
    std::string_view stem, int stack_index, std::span<const std::string_view> suffixes,
    size_t rank) const {
  const auto present_suffix = [&](const ModuleTensors& module) {
    return std::find_if(suffixes.begin(), suffixes.end(),
                        [&](std::string_view suffix) { return module.has(suffix); });
  };
  for (std::string& stored : names_.stored(stem)) {
    const ModuleTensors alone(*checkpoint_, stored);
    if (const auto suffix = present_suffix(alone); suffix != suffixes.end()) {
      const auto tensor = checkpoint_->tensor(alone.name(*suffix));
      const bool is_stack = tensor.ok() && tensor.value()->shape.size() == rank + 1;
      const bool is_whole = rank == 2 && stack_index < 0;
      const int index = is_whole ? ModuleTensors::kWholeStack : stack_index;
      return ModuleTensors(*checkpoint_, std::move(stored), is_stack ? index : -1);
    }
    for (std::string& stack : expert_stack_stems(stored, stack_index)) {
      ModuleTensors stacked(*checkpoint_, std::move(stack), stack_index);
      if (present_suffix(stacked) != suffixes.end()) return stacked;
    }
  }
  return std::nullopt;
}

std::optional<JoinedStem> SafetensorsSource::find_joined(std::string_view stem,
                                                         std::string_view suffix) const {
  for (const std::string& stored : names_.stored(stem)) {
    auto joined = TensorNames::joined_convolution(stored);
    if (joined && checkpoint_->has(joined->stem + std::string(suffix))) return joined;
  }
  return std::nullopt;
}

// A tensor that is stored by this name alone: a matrix by that of its module, or a vector that is
// in no module.
const TensorView* SafetensorsSource::find_bare(std::string_view stem) const {
  for (const std::string& stored : names_.stored(stem)) {
    const auto tensor = checkpoint_->tensor(stored);
    if (tensor.ok()) return tensor.value();
  }
  return nullptr;
}

std::optional<FusedExpertStem> SafetensorsSource::find_fused(std::string_view stem, int stack_index,
                                                             std::string_view suffix) const {
  for (const std::string& stored : names_.stored(stem)) {
    auto fused = fused_expert_stem(stored, stack_index);
    if (fused && checkpoint_->has(fused->stem + std::string(suffix))) return fused;
  }
  return std::nullopt;
}

Result<StoredMatrix> SafetensorsSource::fused_matrix(const FusedExpertStem& fused,
                                                     const MatrixRequest& request) const {
  const ModuleTensors module(*checkpoint_, fused.stem, request.stack_index);
  const bool is_split = fused.rows != FusedExpertStem::Rows::kAll;
  const auto map = is_split ? row_map(fused.rows, request.rows) : std::span<const int32_t>();
  if (is_split && map.empty()) {
    return misfit(TRY(module.get(kFusedBlocks)),
                  "a stack of " + std::to_string(request.rows) + " gate and as many up rows");
  }
  StoredMatrix stored = TRY(gpt_oss_matrix(module, {request.rows, request.columns}, map));
  stored.is_mapped_file = checkpoint_->is_mapped();
  return stored;
}

// Among the families with such a stack, only gpt-oss has biases with it; the others (Qwen 3.5) keep
// gate rows before up rows, and do not transpose.
Result<StoredMatrix> SafetensorsSource::transposed_matrix(const FusedExpertStem& fused,
                                                          const MatrixRequest& request) const {
  if (!checkpoint_->has(fused.stem + std::string(kFusedBias))) {
    const TensorView expert =
        TRY(ModuleTensors(*checkpoint_, fused.stem, request.stack_index).get(""));
    if (is_float(expert.dtype) && expert.shape == stacked_shape(fused, request)) {
      return stacked_part(expert, fused, request);
    }
    return Error{ErrorCode::kUnsupported,
                 "the tensor " + fused.stem +
                     " stores all experts in a way unknown here; supported are the stacks of "
                     "gpt-oss, which have biases, those of MLX, and single tensors"};
  }
  const TensorView expert =
      TRY(ModuleTensors(*checkpoint_, fused.stem, request.stack_index).get(""));
  const bool is_split = fused.rows != FusedExpertStem::Rows::kAll;
  const bool is_up = fused.rows == FusedExpertStem::Rows::kOdd;
  const StoredRows rows{.step = is_split ? 2 : 1, .first = is_up ? 1 : 0};
  TRY(expect_here(expert));
  StoredMatrix matrix = TRY(transposed_expert(expert, request, rows));
  if (checkpoint_->is_mapped()) release_pages(expert.bytes);
  return matrix;
}

Result<StoredMatrix> SafetensorsSource::stacked_part(TensorView expert,
                                                     const FusedExpertStem& fused,
                                                     const MatrixRequest& request) const {
  if (fused.rows != FusedExpertStem::Rows::kAll) {
    const size_t half = expert.bytes.size() / 2;
    const bool is_up = fused.rows == FusedExpertStem::Rows::kOdd;
    expert.bytes = expert.bytes.subspan(is_up ? half : 0, half);
    expert.shape = {request.rows, request.columns};
  }
  StoredMatrix stored = TRY(plain_matrix(expert, {request.rows, request.columns}));
  stored.is_mapped_file = checkpoint_->is_mapped();
  return stored;
}

Result<StoredVector> SafetensorsSource::fused_bias(const FusedExpertStem& fused, int stack_index,
                                                   int size) const {
  if (fused.rows == FusedExpertStem::Rows::kAll) {
    const ModuleTensors module(*checkpoint_, fused.stem, stack_index);
    const TensorView bias = TRY(module.get(kFusedBias));
    TRY(expect_float(bias));
    TRY(expect_shape(bias, {size}));
    return StoredVector{bias.dtype, bias.bytes};
  }
  const TensorView& tensor = *TRY(checkpoint_->tensor(fused.stem + std::string(kFusedBias)));
  TRY(expect_here(tensor));
  const auto found = split_biases_.find(tensor.name);
  if (found == split_biases_.end() || found->second.size != size ||
      stack_index >= found->second.count) {
    return misfit(tensor, "a stack with a row " + std::to_string(stack_index) + " of " +
                              std::to_string(size) + " gate and as many up elements");
  }
  const SplitBiases& biases = found->second;
  const bool is_up = fused.rows == FusedExpertStem::Rows::kOdd;
  const auto row_bytes = static_cast<size_t>(biases.size) * dtype_bytes(biases.dtype);
  const auto row = static_cast<size_t>(stack_index + (is_up ? biases.count : 0));
  return StoredVector{biases.dtype, std::span(biases.bytes).subspan(row * row_bytes, row_bytes)};
}

// Empty if no fused stack has that many rows.
std::span<const int32_t> SafetensorsSource::row_map(FusedExpertStem::Rows rows,
                                                    int row_count) const {
  const auto count = static_cast<size_t>(row_count);
  const auto& map = rows == FusedExpertStem::Rows::kEven ? even_rows_ : odd_rows_;
  return count <= map.size() ? std::span(map).first(count) : std::span<const int32_t>();
}

Status SafetensorsSource::split_fused_experts() {
  int64_t rows_max = 0;
  for (const TensorView& tensor : checkpoint_->tensors()) {
    if (is_fused(tensor, kFusedBias)) TRY(split_biases(tensor));
    if (!is_fused(tensor, kFusedBlocks) || tensor.shape.size() != 4) continue;
    if (tensor.shape[1] > kFusedRowsMax) {
      return misfit(tensor, "a stack of at most " + std::to_string(kFusedRowsMax) + " rows");
    }
    rows_max = std::max(rows_max, tensor.shape[1]);
  }
  for (int32_t row = 0; row + 1 < rows_max; row += 2) {
    even_rows_.push_back(row);
    odd_rows_.push_back(row + 1);
  }
  return Ok{};
}

// If its shape or type is wrong, the later request reports it.
Status SafetensorsSource::split_biases(const TensorView& fused) {
  if (fused.shape.size() != 2 || fused.shape[1] % 2 != 0 || !is_float(fused.dtype)) return Ok{};
  if (fused.bytes.empty() || !fused.is_here) return Ok{};
  if (fused.bytes.size() > kSplitBytesMax) {
    return misfit(fused, "at most " + std::to_string(kSplitBytesMax) + " bytes of biases");
  }
  SplitBiases split{fused.dtype, fused.shape[0], fused.shape[1] / 2, {}};
  split.bytes.resize(fused.bytes.size());
  const size_t element_bytes = dtype_bytes(fused.dtype);
  const size_t half_bytes = fused.bytes.size() / 2;
  // Pair after pair of (gate, up): experts are in the same order in both halves as in the stack.
  for (size_t offset = 0; offset < half_bytes; offset += element_bytes) {
    const std::byte* pair = fused.bytes.data() + 2 * offset;
    std::memcpy(split.bytes.data() + offset, pair, element_bytes);
    std::memcpy(split.bytes.data() + half_bytes + offset, pair + element_bytes, element_bytes);
  }
  split_biases_.emplace(fused.name, std::move(split));
  return Ok{};
}

}  // namespace lockstep
