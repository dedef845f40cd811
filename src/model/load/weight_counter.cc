#include "model/load/weight_counter.h"

#include <algorithm>

#include "base/check.h"
#include "device/null_device.h"
#include "device/packing/counting_device.h"

namespace lockstep {
namespace {

const StoredMatrix* known_matrix(const StoredWeight& stored, std::string_view name) {
  for (const auto& [known, matrix] : stored.matrices) {
    if (known == name) return &matrix;
  }
  return nullptr;
}

// Elements of a vector, whose values do not matter.
class Zeros {
 public:
  StoredVector vector(DType type, int size) {
    bytes_.resize(std::max(bytes_.size(), static_cast<size_t>(size) * dtype_bytes(type)));
    return {type, bytes_};
  }

 private:
  std::vector<std::byte> bytes_;
};

// Notes how a source stores what the loader requests.
class SizeRecorder final : public WeightSource {
 public:
  SizeRecorder(const WeightSource& source, StoredWeight& stored)
      : source_(source), stored_(stored) {}

  Result<StoredMatrix> matrix(const MatrixRequest& request) const override {
    if (const StoredMatrix* known = known_matrix(stored_, request.name)) return *known;
    // Only the sizes are wanted: one row is the smallest request that a source may have to convert.
    StoredMatrix matrix = TRY(source_.matrix({.name = request.name,
                                              .stack_index = request.stack_index,
                                              .rows = request.rows,
                                              .columns = request.columns,
                                              .row_end = 1}));
    matrix.is_mapped_file = false;  // nothing is read, so there are no pages to release
    stored_.matrices.emplace_back(request.name, matrix);
    return matrix;
  }
  Result<StoredVector> vector(std::string_view name, int stack_index, int size) const override {
    stored_.vector_type = TRY(source_.vector(name, stack_index, size)).dtype;
    return zeros_.vector(stored_.vector_type, size);
  }
  std::vector<int64_t> shape_of(std::string_view name) const override {
    return source_.shape_of(name);
  }
  bool has(std::string_view name, int stack_index) const override {
    return source_.has(name, stack_index);
  }
  uint64_t file_bytes() const override { return 0; }
  Status need(std::span<const std::byte> /*bytes*/) const override { return Ok{}; }

 private:
  const WeightSource& source_;
  StoredWeight& stored_;
  mutable Zeros zeros_;
};

// Answers the loader's requests for one weight from what was noted.
class KnownSizes final : public WeightSource {
 public:
  explicit KnownSizes(const StoredWeight& stored) : stored_(stored) {}

  Result<StoredMatrix> matrix(const MatrixRequest& request) const override {
    const StoredMatrix* known = known_matrix(stored_, request.name);
    if (known == nullptr) return no_tensor(request.name);
    return *known;
  }
  Result<StoredVector> vector(std::string_view /*name*/, int /*stack_index*/,
                              int size) const override {
    return zeros_.vector(stored_.vector_type, size);
  }
  std::vector<int64_t> shape_of(std::string_view /*name*/) const override { return {}; }
  bool has(std::string_view name, int /*stack_index*/) const override {
    return known_matrix(stored_, name) != nullptr;
  }
  uint64_t file_bytes() const override { return 0; }
  Status need(std::span<const std::byte> /*bytes*/) const override { return Ok{}; }

 private:
  const StoredWeight& stored_;
  mutable Zeros zeros_;
};

}  // namespace

Result<StoredWeight> stored_weight(const WeightSource& source, const ModelConfig& config,
                                   const Cut& whole, const Weight& weight) {
  LOCKSTEP_CHECK(whole.rank_count() == 1 && weight.expert <= 0);
  StoredWeight stored{.weight = weight, .copies = weight.expert < 0 ? 1 : config.experts.count};
  const SizeRecorder recorder(source, stored);
  NullDevice device;
  LayerWeights place;
  const uint64_t bytes = TRY(load_weight({recorder, config, {whole}, device}, weight, place));
  stored.element_bytes =
      static_cast<double>(bytes) / (static_cast<double>(weight.rows) * weight.columns);
  return stored;
}

Result<WeightBytes> WeightCounter::count(const StoredWeight& stored, const Cut& cut, int rank) {
  const WeightPart part = part_of(stored.weight, cut, rank);
  const Key key{&stored, part.rows.begin, part.rows.end, part.columns.begin, part.columns.end};
  const auto known = counted_.find(key);
  if (known != counted_.end()) return known->second;
  const KnownSizes source(stored);
  CountingDevice device;
  LayerWeights place;
  const uint64_t bytes =
      TRY(load_weight({source, config_, {cut, rank}, device}, stored.weight, place));
  const auto copies = static_cast<uint64_t>(stored.copies);
  // The vectors of all experts share a buffer, which is allocated with the first one's.
  const WeightBytes counted{.stored = bytes * copies,
                            .packed = device.packed_bytes() * copies,
                            .vectors = device.allocated_bytes()};
  counted_.emplace(key, counted);
  return counted;
}

}  // namespace lockstep
