#include "model/load/rank_reads.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <utility>

#include "device/null_device.h"
#include "model/load/stages.h"
#include "model/load/stored_forms.h"
#include "model/load/weights.h"

namespace lockstep {
namespace {

// Records what a loader requests. Vectors, which a loader reads at once, are zeros.
class RecordingSource final : public WeightSource {
 public:
  explicit RecordingSource(const WeightSource& source) : source_(source) {}

  Result<StoredMatrix> matrix(const MatrixRequest& request) const override {
    return source_.matrix(request);
  }
  Result<StoredVector> vector(std::string_view name, int stack_index, int size) const override {
    const StoredVector stored = TRY(source_.vector(name, stack_index, size));
    note(stored.bytes);
    zeros_.resize(std::max(zeros_.size(), stored.bytes.size()));
    return StoredVector{stored.dtype, std::span(zeros_).first(stored.bytes.size())};
  }
  std::vector<int64_t> shape_of(std::string_view name) const override {
    return source_.shape_of(name);
  }
  bool has(std::string_view name, int stack_index) const override {
    return source_.has(name, stack_index);
  }
  uint64_t file_bytes() const override { return source_.file_bytes(); }
  Status need(std::span<const std::byte> bytes) const override {
    note(bytes);
    return Ok{};
  }

  RankReads reads() const {
    RankReads reads;
    for (const auto& [file, ranges] : noted_) reads.push_back({file, joined(ranges)});
    return reads;
  }

 private:
  void note(std::span<const std::byte> bytes) const {
    for (const MappedFile* file : source_.files()) {
      if (const auto place = file->place_of(bytes)) noted_[file->path()].push_back(*place);
    }
  }

  static std::vector<ByteRange> joined(std::vector<ByteRange> ranges) {
    std::sort(ranges.begin(), ranges.end(),
              [](const ByteRange& a, const ByteRange& b) { return a.begin < b.begin; });
    std::vector<ByteRange> all;
    for (const ByteRange& range : ranges) {
      if (!all.empty() && range.begin <= all.back().end) {
        all.back().end = std::max(all.back().end, range.end);
      } else {
        all.push_back(range);
      }
    }
    return all;
  }

  const WeightSource& source_;
  // A loader's requests are const, but they are recorded here.
  mutable std::map<std::filesystem::path, std::vector<ByteRange>> noted_;
  mutable std::vector<std::byte> zeros_;  // as long as the longest vector
};

}  // namespace

Result<std::vector<RankReads>> rank_reads(OpenedModel model, std::span<const double> shares,
                                          int stages) {
  const auto count = static_cast<int>(shares.size());
  if (stages < 1 || count == 0 || count % stages != 0) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} ranks cannot form {} stages of the same size", count, stages)};
  }
  use_draft_layer(model, stages);
  const ModelConfig& config = model.config;
  std::vector<Range> layers{{0, config.layers}};
  if (stages > 1) {
    layers =
        TRY(deal_layers(TRY(token_bytes_of(*model.source, config)), stage_shares(shares, stages)));
  }
  const CutAlignment alignment = TRY(alignment_of(*model.source, config));
  const int ranks = count / stages;
  std::vector<RankReads> reads;
  for (int rank = 0; rank < count; ++rank) {
    const int stage = rank / ranks;
    const auto of_stage =
        shares.subspan(static_cast<size_t>(stage * ranks), static_cast<size_t>(ranks));
    const RecordingSource recording(*model.source);
    for (const bool cuts_latents : {false, true}) {
      if (cuts_latents && config.latent.rows() == 0) continue;
      const Cut cut = TRY(Cut::make(config, of_stage, {alignment, cuts_latents}));
      NullDevice device;
      const WeightShare share{cut, rank % ranks, layers[static_cast<size_t>(stage)]};
      TRY(load_weights({recording, config, share, device}));
    }
    reads.push_back(recording.reads());
  }
  return reads;
}

}  // namespace lockstep
