// QuantisingSource: another source's checkpoint with matrices quantised to MLX's affine form on
// request (quantise.h), only in the part that will be read. So the loader (`--bits`) and `lockstep
// quantize` give bit-identical weights. Norms and biases stay unchanged, and so do matrices whose
// rows are not whole groups.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/text_hash.h"
#include "base/threads/thread_team.h"
#include "weights/quantised/quantisation_report.h"
#include "weights/quantised/quantise.h"
#include "weights/weight_source.h"

namespace lockstep {

// Latent attention as Hugging Face stores it: "kv_b_proj" holds each head's rows for its key, then
// those for its value. MLX stores (and lockstep multiplies with) the transposed first part as
// "embed_q" and the second as "unembed_out". Transposing codes does not give the transposed
// matrix's codes, so the parts are made from the floats.
struct LatentHeads {
  int count = 0;  // 0: none
  int nope = 0;
  int value = 0;
  int kv_rank = 0;

  int rows() const { return count * (nope + value); }
};

struct QuantisingOptions {
  int bits = 4;  // is_affine_bits()
  // Matrices with other bits, by name with ".weight"; 0: unchanged.
  std::unordered_map<std::string, int, TextHash> bits_of;
  LatentHeads latent;
  bool requantises = false;  // also matrices that are quantised already; else refused
  int threads = 1;
  int first_core = -1;  // as in ThreadTeam
};

class QuantisingSource final : public WeightSource {
 public:
  QuantisingSource(std::shared_ptr<const WeightSource> source, QuantisingOptions options);

  // In addition to the source's errors: kUnsupported for a matrix that is quantised already,
  // kCorrupt for weights that are not finite. Callers take turns. converted() has the loss.
  Result<StoredMatrix> matrix(const MatrixRequest& request) const override;
  Result<StoredVector> vector(std::string_view name, int stack_index, int size) const override;
  std::vector<int64_t> shape_of(std::string_view name) const override {
    return source_->shape_of(name);
  }
  bool has(std::string_view name, int stack_index = -1) const override;
  uint64_t file_bytes() const override { return source_->file_bytes(); }
  std::optional<bool> lowers_draft_norms() const override { return source_->lowers_draft_norms(); }

  // The matrices that matrix() has converted. If a matrix was requested more than once, the last
  // request counts: loaders first request a row to learn how a matrix is stored.
  struct Converted {
    std::string name;  // as requested
    int stack_index = -1;
    TensorError part;
  };
  std::vector<Converted> converted() const;

  // Like matrix(), but adds the quantisation error to `error` instead of to converted().
  Result<StoredMatrix> quantise(const MatrixRequest& request, QuantisationError& error) const;
  // 0: such a matrix stays unchanged.
  int bits_of(std::string_view name, int columns) const;
  // Whether kv_b_proj becomes embed_q and unembed_out: if both have whole groups.
  bool splits_latent_heads() const;

 private:
  // Called from the team's threads.
  struct SourceRows {
    // Fills the floats of a row, starting at a column.
    std::function<void(int row, int column_begin, std::span<float> out)> read;
    // Rows [begin, end) will not be read again.
    std::function<void(int begin, int end)> give_back;
  };

  Result<StoredMatrix> convert(const MatrixRequest& request, int bits, const SourceRows& source,
                               QuantisationError& error) const;
  Result<StoredMatrix> keep(const MatrixRequest& request) const;
  Result<StoredMatrix> latent_part(const MatrixRequest& request, std::string_view kv_up,
                                   QuantisationError& error) const;
  std::optional<std::string> kv_up_of(std::string_view name) const;
  Status check_source(std::string_view name, const StoredMatrix& stored) const;

  std::shared_ptr<const WeightSource> source_;
  QuantisingOptions options_;
  mutable std::mutex mutex_;  // guards the members below
  mutable ThreadTeam team_;
  mutable std::map<std::pair<std::string, int>, TensorError> converted_;
};

}  // namespace lockstep
