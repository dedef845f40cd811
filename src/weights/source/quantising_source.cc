#include "weights/source/quantising_source.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/files/mapped_file.h"
#include "tensor/half.h"
#include "tensor/stored_check.h"
#include "tensor/stored_rows.h"

namespace lockstep {
namespace {

constexpr int kGroup = kQuantisedGroup;
constexpr size_t kChunkWeights = size_t{1} << 19;  // per chunk of a thread, at most
constexpr int kChunksOfThread = 4;                 // or this many, so that threads end together
constexpr std::string_view kKvUp = "kv_b_proj.weight";
constexpr std::string_view kKeyPart = "embed_q.weight";
constexpr std::string_view kValuePart = "unembed_out.weight";

// The range of a request's part, in whole groups.
struct QuantisedPart {
  int row_begin;
  int row_end;
  int column_begin;
  int column_end;

  explicit QuantisedPart(const MatrixRequest& request)
      : row_begin(request.row_begin),
        row_end(request.row_end > 0 ? request.row_end : request.rows),
        column_begin(request.column_begin / kGroup * kGroup),
        column_end(request.column_end > 0 ? (request.column_end + kGroup - 1) / kGroup * kGroup
                                          : request.columns) {
    LOCKSTEP_CHECK(row_begin >= 0 && row_begin <= row_end && row_end <= request.rows);
    LOCKSTEP_CHECK(column_begin <= column_end && column_end <= request.columns);
  }
  int rows() const { return row_end - row_begin; }
  int columns() const { return column_end - column_begin; }
};

int rows_of_chunk(const QuantisedPart& part, int threads) {
  const int width = std::max(part.columns(), 1);
  const int most = static_cast<int>(kChunkWeights / static_cast<size_t>(width));
  return std::clamp(part.rows() / (threads * kChunksOfThread), 1, std::max(most, 1));
}

// The bytes of a converted matrix. Parts that were not requested stay untouched, so that the system
// allocates no memory for them.
struct ConvertedBytes {
  std::unique_ptr<std::byte[]> codes;
  std::unique_ptr<uint16_t[]> scales;
  std::unique_ptr<uint16_t[]> biases;
};

template <class Value>
std::unique_ptr<Value[]> undefined(size_t count) {
  return std::make_unique_for_overwrite<Value[]>(count);
}

void read_plain_row(const StoredMatrix& stored, DType type, int row, int column_begin,
                    std::span<float> out) {
  const size_t bytes = dtype_bytes(type);
  const std::byte* from = stored.codes.data() +
                          static_cast<size_t>(stored.stored_row(row)) * stored.row_bytes +
                          static_cast<size_t>(column_begin) * bytes;
  if (type == DType::kF32) {
    std::memcpy(out.data(), from, out.size_bytes());
  } else if (type == DType::kBF16) {
    for (size_t i = 0; i < out.size(); ++i) out[i] = load_element(from, DType::kBF16, i);
  } else {
    for (size_t i = 0; i < out.size(); ++i) out[i] = load_element(from, DType::kF16, i);
  }
}

void read_row(const StoredMatrix& stored, int row, int column_begin, std::span<float> out) {
  const auto type = plain_element_type(stored);
  if (type && stored.column_map.empty()) {
    read_plain_row(stored, *type, row, column_begin, out);
  } else {
    dequantise_row(stored, row, column_begin, out);
  }
}

// Releases its rows [begin, end), which have been read. Packed parts may be shared with matrices
// still to be read, which then read them from the file again.
void give_back(const StoredMatrix& stored, int begin, int end) {
  if (!stored.is_mapped_file) return;
  if (plain_element_type(stored) && stored.row_map.empty()) {
    release_pages(stored.codes.subspan(static_cast<size_t>(begin) * stored.row_bytes,
                                       static_cast<size_t>(end - begin) * stored.row_bytes));
  } else if (end == stored.rows) {
    for (const auto& part : {stored.codes, stored.scales, stored.biases}) release_pages(part);
  }
}

Error not_finite(const MatrixRequest& request) {
  std::string name(request.name);
  if (request.stack_index >= 0) name += " (" + std::to_string(request.stack_index) + ")";
  return {ErrorCode::kCorrupt,
          "the tensor " + name + " cannot be quantised: it holds a NaN or infinite weight"};
}

}  // namespace

QuantisingSource::QuantisingSource(std::shared_ptr<const WeightSource> source,
                                   QuantisingOptions options)
    : source_(std::move(source)),
      options_(std::move(options)),
      team_({.threads = options_.threads, .first_core = options_.first_core}) {
  LOCKSTEP_CHECK(is_affine_bits(options_.bits));
}

Result<StoredMatrix> QuantisingSource::matrix(const MatrixRequest& request) const {
  const int bits = bits_of(request.name, request.columns);
  QuantisationError error;
  StoredMatrix matrix = TRY(quantise(request, error));
  if (bits == 0) return matrix;
  const QuantisedPart part(request);
  const auto weights = static_cast<uint64_t>(part.rows()) * static_cast<uint64_t>(part.columns());
  const std::lock_guard lock(mutex_);
  converted_[{std::string(request.name), request.stack_index}] = {
      .bits = bits, .weights = weights, .error = error};
  return matrix;
}

std::vector<QuantisingSource::Converted> QuantisingSource::converted() const {
  const std::lock_guard lock(mutex_);
  std::vector<Converted> all;
  for (const auto& [key, part] : converted_) all.push_back({key.first, key.second, part});
  return all;
}

Result<StoredVector> QuantisingSource::vector(std::string_view name, int stack_index,
                                              int size) const {
  return source_->vector(name, stack_index, size);
}

bool QuantisingSource::has(std::string_view name, int stack_index) const {
  if (splits_latent_heads() && name.ends_with(kKvUp)) return false;
  return kv_up_of(name).has_value() || source_->has(name, stack_index);
}

int QuantisingSource::bits_of(std::string_view name, int columns) const {
  if (columns % kGroup != 0) return 0;
  if (options_.latent.count > 0 && name.ends_with(kKvUp)) return 0;
  const auto found = options_.bits_of.find(std::string(name));
  return found == options_.bits_of.end() ? options_.bits : found->second;
}

bool QuantisingSource::splits_latent_heads() const {
  const LatentHeads& latent = options_.latent;
  return latent.count > 0 && latent.nope % kGroup == 0 && latent.kv_rank % kGroup == 0;
}

// The kv_b_proj from which an embed_q or unembed_out is made, if the source lacks that itself.
std::optional<std::string> QuantisingSource::kv_up_of(std::string_view name) const {
  if (!splits_latent_heads()) return std::nullopt;
  for (const std::string_view part : {kKeyPart, kValuePart}) {
    if (!name.ends_with(part)) continue;
    std::string kv_up(name.substr(0, name.size() - part.size()));
    kv_up += kKvUp;
    if (source_->has(kv_up)) return kv_up;
  }
  return std::nullopt;
}

Result<StoredMatrix> QuantisingSource::quantise(const MatrixRequest& request,
                                                QuantisationError& error) const {
  const int bits = bits_of(request.name, request.columns);
  if (bits == 0) return keep(request);
  if (const auto kv_up = kv_up_of(request.name)) return latent_part(request, *kv_up, error);
  const StoredMatrix stored = TRY(source_->matrix(request));
  TRY(check_source(request.name, stored));
  return convert(request, bits,
                 {.read = [&](int row, int column_begin,
                              std::span<float> out) { read_row(stored, row, column_begin, out); },
                  .give_back = [&](int begin, int end) { give_back(stored, begin, end); }},
                 error);
}

// For a quantised matrix that must not be: the values of the rows that are wanted in BF16.
Result<StoredMatrix> QuantisingSource::keep(const MatrixRequest& request) const {
  const StoredMatrix stored = TRY(source_->matrix(request));
  TRY(check_source(request.name, stored));
  if (plain_element_type(stored)) return stored;
  const auto columns = static_cast<size_t>(request.columns);
  const auto elements =
      std::make_shared<std::vector<uint16_t>>(static_cast<size_t>(request.rows) * columns);
  std::vector<float> row(columns);
  const int end = request.row_end > 0 ? request.row_end : request.rows;
  for (int i = request.row_begin; i < end; ++i) {
    read_row(stored, i, 0, row);
    std::transform(row.begin(), row.end(),
                   elements->begin() + static_cast<ptrdiff_t>(static_cast<size_t>(i) * columns),
                   bf16_of);
  }
  StoredMatrix plain;
  plain.rows = request.rows;
  plain.columns = request.columns;
  plain.codes = std::as_bytes(std::span<const uint16_t>(*elements));
  plain.row_bytes = columns * sizeof(uint16_t);
  plain.scale_type = DType::kBF16;
  plain.owner = elements;
  return plain;
}

// A head's key rows, transposed, or its value rows.
Result<StoredMatrix> QuantisingSource::latent_part(const MatrixRequest& request,
                                                   std::string_view kv_up,
                                                   QuantisationError& error) const {
  const LatentHeads& latent = options_.latent;
  const bool is_key = request.name.ends_with(kKeyPart);
  const int head = request.stack_index;
  LOCKSTEP_CHECK(head >= 0 && head < latent.count);
  LOCKSTEP_CHECK(request.columns == (is_key ? latent.nope : latent.kv_rank));
  LOCKSTEP_CHECK(request.rows == (is_key ? latent.kv_rank : latent.value));
  const int first = head * (latent.nope + latent.value) + (is_key ? 0 : latent.nope);
  const int end = first + (is_key ? latent.nope : latent.value);
  const StoredMatrix stored = TRY(source_->matrix({.name = kv_up,
                                                   .rows = latent.rows(),
                                                   .columns = latent.kv_rank,
                                                   .row_begin = first,
                                                   .row_end = end}));
  TRY(check_source(kv_up, stored));
  const auto width = static_cast<size_t>(latent.kv_rank);
  std::vector<float> floats(static_cast<size_t>(end - first) * width);
  for (int row = first; row < end; ++row) {
    read_row(stored, row, 0, {floats.data() + static_cast<size_t>(row - first) * width, width});
  }
  return convert(request, bits_of(request.name, request.columns),
                 {.read =
                      [&](int row, int column_begin, std::span<float> out) {
                        for (size_t i = 0; i < out.size(); ++i) {
                          const auto column = static_cast<size_t>(column_begin) + i;
                          const auto r = static_cast<size_t>(row);
                          out[i] = floats[is_key ? column * width + r : r * width + column];
                        }
                      },
                  .give_back = [](int, int) {}},
                 error);
}

Status QuantisingSource::check_source(std::string_view name, const StoredMatrix& stored) const {
  TRY(check_stored_matrix(stored));
  if (plain_element_type(stored) || options_.requantises) return Ok{};
  return Error{ErrorCode::kUnsupported,
               "the tensor " + std::string(name) +
                   " is already quantised; `lockstep quantize --requantise` quantises it again"};
}

Result<StoredMatrix> QuantisingSource::convert(const MatrixRequest& request, int bits,
                                               const SourceRows& source,
                                               QuantisationError& error) const {
  const QuantisedPart part(request);
  const auto rows = static_cast<size_t>(request.rows);
  const size_t groups = static_cast<size_t>(request.columns) / kGroup;
  const size_t row_bytes = affine_code_bytes(static_cast<size_t>(request.columns), bits);
  const auto parts = std::make_shared<ConvertedBytes>();
  parts->codes = undefined<std::byte>(rows * row_bytes);
  parts->scales = undefined<uint16_t>(rows * groups);
  parts->biases = undefined<uint16_t>(rows * groups);
  const size_t first_group = static_cast<size_t>(part.column_begin) / kGroup;
  std::vector<QuantisationError> errors(static_cast<size_t>(part.rows()));
  std::atomic<bool> is_sound{true};
  const std::lock_guard lock(mutex_);
  team_.for_each_chunk(part.rows(), rows_of_chunk(part, team_.size()), [&](int begin, int end) {
    std::vector<float> weights(static_cast<size_t>(part.columns()));
    for (int i = begin; i < end; ++i) {
      const int row = part.row_begin + i;
      source.read(row, part.column_begin, weights);
      const size_t at = static_cast<size_t>(row) * groups + first_group;
      const AffineGroups out{parts->codes.get() + at * affine_code_bytes(kGroup, bits),
                             parts->scales.get() + at, parts->biases.get() + at};
      // Relaxed: the end of the run orders it before the read below.
      if (!quantise_groups(weights, bits, out, errors[static_cast<size_t>(i)])) {
        is_sound.store(false, std::memory_order_relaxed);
      }
    }
    source.give_back(part.row_begin + begin, part.row_begin + end);
  });
  if (!is_sound.load(std::memory_order_relaxed)) return not_finite(request);
  // Row by row, so that the sum does not depend on the threads.
  for (const QuantisationError& each : errors) error.add(each);
  StoredMatrix matrix;
  matrix.format = StoredFormat::kAffine;
  matrix.rows = request.rows;
  matrix.columns = request.columns;
  matrix.codes = {parts->codes.get(), rows * row_bytes};
  matrix.row_bytes = row_bytes;
  matrix.bits = bits;
  matrix.group = kGroup;
  matrix.scale_type = DType::kBF16;
  matrix.scales = std::as_bytes(std::span<const uint16_t>(parts->scales.get(), rows * groups));
  matrix.biases = std::as_bytes(std::span<const uint16_t>(parts->biases.get(), rows * groups));
  matrix.owner = parts;
  return matrix;
}

}  // namespace lockstep
