// QuantisingSource: another source's checkpoint, its matrices quantised to MLX's affine form as
// they are asked for (quantise.h), and only the part that will be read. So the loader (`--bits`)
// and `lockstep quantize` give the same weights to the bit. Norms and biases stay as they are; so
// do matrices whose rows are no whole groups.
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

#include "base/thread_team.h"
#include "weights/quantisation_report.h"
#include "weights/quantise.h"
#include "weights/weight_source.h"

namespace lockstep {

// Latent attention as Hugging Face stores it: "kv_b_proj" holds each head's rows for its key, then
// those for its value. MLX stores (and lockstep multiplies with) the transposed first part as
// "embed_q" and the second as "unembed_out". Transposed codes are no codes of the transposed
// matrix, so the parts are taken from the floats.
struct LatentHeads {
  int count = 0;  // 0: none
  int nope = 0;
  int value = 0;
  int kv_rank = 0;

  int rows() const { return count * (nope + value); }
};

struct QuantisingOptions {
  int bits = 4;  // is_affine_bits()
  // Where a matrix is to have others; 0: it stays as it is. By its name with ".weight".
  std::unordered_map<std::string, int> bits_of;
  LatentHeads latent;
  bool requantises = false;  // what is quantised already; else that is refused
  int threads = 1;
  int first_core = -1;  // as in ThreadTeam
};

class QuantisingSource final : public WeightSource {
 public:
  QuantisingSource(std::shared_ptr<const WeightSource> source, QuantisingOptions options);

  // Beyond the source's errors: kUnsupported for a matrix that is quantised already, kCorrupt for
  // weights that are no numbers. Callers take turns. converted() tells what was lost.
  Result<StoredMatrix> matrix(const MatrixRequest& request) const override;
  Result<StoredVector> vector(std::string_view name, int stack_index, int size) const override;
  bool has(std::string_view name, int stack_index = -1) const override;
  uint64_t file_bytes() const override { return source_->file_bytes(); }

  // What matrix() has converted. Where it was asked for a matrix more than once, the last request
  // counts: loaders first ask for a row to learn how a matrix is stored.
  struct Converted {
    std::string name;  // as it was asked for
    int stack_index = -1;
    TensorError part;
  };
  std::vector<Converted> converted() const;

  // matrix() without a note in converted(), which adds what quantisation did to `error`.
  Result<StoredMatrix> quantise(const MatrixRequest& request, QuantisationError& error) const;
  // 0: such a matrix stays as it is.
  int bits_of(std::string_view name, int columns) const;
  // Whether kv_b_proj becomes embed_q and unembed_out: if both have whole groups. Else it stays.
  bool splits_latent_heads() const;

 private:
  // Called from the team's threads.
  struct SourceRows {
    // Fills the floats of a row from a column on.
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
  mutable std::mutex mutex_;  // of what follows
  mutable ThreadTeam team_;
  mutable std::map<std::pair<std::string, int>, TensorError> converted_;
};

}  // namespace lockstep
