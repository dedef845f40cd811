#include "weights/random/random_source.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "base/hash.h"
#include "base/text_hash.h"
#include "weights/random/random_format.h"
#include "weights/repeated_bytes.h"

namespace lockstep {
namespace {

// Patterns are longer than a core's cache and differ between neighbouring matrices.
constexpr size_t kPatternBytes = size_t{16} << 20;
constexpr size_t kConstantBytes = size_t{1} << 20;
constexpr size_t kAlignment = 64;  // of a part's beginning in its pattern

constexpr RandomPart kOnes = {
    .content = RandomContent::kConstant, .type = DType::kBF16, .value = 1};
constexpr RandomPart kZeros = {
    .content = RandomContent::kConstant, .type = DType::kBF16, .value = 0};

struct Region {
  RandomPart part;
  size_t bytes = 0;                   // of the largest view
  size_t pattern = 0;                 // bytes
  std::vector<RepeatedBytes> memory;  // one, once made
};

class RandomSource final : public WeightSource {
 public:
  RandomSource(const RandomFormat& format, std::vector<RandomTensor> tensors)
      : format_(format), tensors_(std::move(tensors)) {
    for (size_t i = 0; i < tensors_.size(); ++i) index_.emplace(tensors_[i].name, i);
  }

  Status allocate();

  Result<StoredMatrix> matrix(const MatrixRequest& request) const override;
  Result<StoredVector> vector(std::string_view name, int stack_index, int size) const override;
  std::vector<int64_t> shape_of(std::string_view /*name*/) const override { return {}; }
  bool has(std::string_view name, int) const override { return index_.contains(name); }
  uint64_t file_bytes() const override { return file_bytes_; }

 private:
  RandomLayout layout(const RandomTensor& tensor) const {
    const bool is_plain = format_.stored == StoredFormat::kPlain;
    const RandomFormat& format =
        tensor.is_never_quantised && !is_plain ? *find_random_format("bf16") : format_;
    return random_layout(format, tensor.rows, tensor.columns);
  }
  void make(const RandomPart& part, size_t bytes);
  // `seed` determines where in the pattern the view begins.
  std::span<const std::byte> view(const RandomPart& part, size_t bytes, size_t seed) const;
  Result<const RandomTensor*> find(std::string_view name, int rows, int columns) const;

  const RandomFormat& format_;
  const std::vector<RandomTensor> tensors_;
  std::unordered_map<std::string_view, size_t, TextHash> index_;
  std::vector<Region> regions_;
  uint64_t file_bytes_ = 0;
};

// The same on every machine, so that ranks on different ones have the same weights.
size_t hash_of(std::string_view name) {
  return static_cast<size_t>(Fnv().add(name).value());
}

RandomPart vector_part(const RandomTensor& tensor) {
  if (tensor.numbers > 0) {
    return {.content = RandomContent::kCount,
            .type = DType::kBF16,
            .value = static_cast<float>(tensor.numbers)};
  }
  return tensor.name.find("norm") != std::string::npos ? kOnes : kZeros;
}

void RandomSource::make(const RandomPart& part, size_t bytes) {
  if (part.content == RandomContent::kNone) return;
  file_bytes_ += bytes;
  auto found = std::find_if(regions_.begin(), regions_.end(),
                            [&](const Region& region) { return region.part == part; });
  if (found == regions_.end()) found = regions_.insert(found, Region{part, 0, 0, {}});
  found->bytes = std::max(found->bytes, bytes);
}

Status RandomSource::allocate() {
  for (const RandomTensor& tensor : tensors_) {
    if (tensor.is_vector) {
      make(vector_part(tensor), static_cast<size_t>(tensor.rows) * 2);
      continue;
    }
    const RandomLayout parts = layout(tensor);
    make(parts.format->codes, parts.code_bytes);
    make(parts.format->scales, parts.scale_bytes);
    make(parts.format->biases, parts.scale_bytes);
    make(parts.format->zeros, parts.zero_bytes);
  }
  for (Region& region : regions_) {
    const bool is_constant = region.part.content == RandomContent::kConstant;
    const size_t unit = std::lcm(RepeatedBytes::page_bytes(), random_unit_bytes(region.part));
    const size_t least = is_constant ? kConstantBytes : kPatternBytes;
    region.pattern = (least + unit - 1) / unit * unit;
    region.memory.push_back(TRY(RepeatedBytes::make(random_pattern(region.part, region.pattern),
                                                    region.bytes + region.pattern)));
  }
  return Ok{};
}

std::span<const std::byte> RandomSource::view(const RandomPart& part, size_t bytes,
                                              size_t seed) const {
  if (part.content == RandomContent::kNone) return {};
  const auto region = std::find_if(regions_.begin(), regions_.end(),
                                   [&](const Region& entry) { return entry.part == part; });
  const size_t step = std::lcm(kAlignment, random_unit_bytes(part));
  return region->memory.front().bytes().subspan(seed % (region->pattern / step) * step, bytes);
}

Result<const RandomTensor*> RandomSource::find(std::string_view name, int rows, int columns) const {
  const auto found = index_.find(name);
  if (found == index_.end()) {
    return no_tensor(name);
  }
  const RandomTensor& tensor = tensors_[found->second];
  if (tensor.rows != rows || tensor.columns != columns) {
    return Error{ErrorCode::kCorrupt,
                 fmt::format("tensor {} has the shape [{}, {}], asked for is [{}, {}]", name,
                             tensor.rows, tensor.columns, rows, columns)};
  }
  return &tensor;
}

Result<StoredMatrix> RandomSource::matrix(const MatrixRequest& request) const {
  const RandomTensor& tensor = *TRY(find(request.name, request.rows, request.columns));
  const RandomLayout parts = layout(tensor);
  const RandomFormat& format = *parts.format;
  const size_t seed = hash_of(request.name);
  return StoredMatrix{.format = format.stored,
                      .rows = request.rows,
                      .columns = request.columns,
                      .codes = view(format.codes, parts.code_bytes, seed),
                      .row_bytes = parts.row_bytes,
                      .bits = format.bits,
                      .group = format.group,
                      .row_group = format.row_group,
                      .scale_type = format.scale_type,
                      .scales = view(format.scales, parts.scale_bytes, 0),
                      .biases = view(format.biases, parts.scale_bytes, 0),
                      .zeros = view(format.zeros, parts.zero_bytes, seed),
                      .zero_bias = 0,
                      .groups = {},
                      .factor = format.factor,
                      .gguf_type = format.gguf_type,
                      .row_map = {}};
}

Result<StoredVector> RandomSource::vector(std::string_view name, int, int size) const {
  const RandomTensor& tensor = *TRY(find(name, size, 1));
  return StoredVector{DType::kBF16,
                      view(vector_part(tensor), static_cast<size_t>(tensor.rows) * 2, 0)};
}

}  // namespace

std::string random_format_names() {
  std::string names;
  for (const RandomFormat& format : random_formats()) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", format.name);
  }
  return names;
}

Result<std::shared_ptr<const WeightSource>> open_random_source(std::string_view format,
                                                               std::vector<RandomTensor> tensors) {
  const RandomFormat* found = find_random_format(format);
  if (!found) {
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("the format {} is unknown here; known are: {}", format, random_format_names())};
  }
  auto source = std::make_shared<RandomSource>(*found, std::move(tensors));
  TRY(source->allocate());
  return std::shared_ptr<const WeightSource>(std::move(source));
}

}  // namespace lockstep
