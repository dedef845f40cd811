// WeightSource: a model loader's view of a checkpoint, independent of container and quantisation.
// Tensors are requested by the names of Hugging Face's model classes ("model.layers.0.mlp.gate_proj
// .weight"); a source knows where and how its files store them. Views point into mapped files and
// live as long as the source. Immutable: any thread may use it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/files/mapped_file.h"
#include "base/result.h"
#include "tensor/stored_matrix.h"

namespace lockstep {

struct MatrixRequest {
  std::string_view name;  // with ".weight"
  // For a matrix that may be stored in a stack (the experts of a layer, the heads of "embed_q"):
  // its index there; then `name` is the matrix's own ("...mlp.experts.3.gate_proj.weight") or the
  // stack's ("...self_attn.embed_q.weight").
  int stack_index = -1;
  int rows = 0;
  int columns = 0;
  // The part that will be read; a converting source may leave the rest undefined. 0: all.
  int row_begin = 0;
  int row_end = 0;
  int column_begin = 0;
  int column_end = 0;
};

struct StoredVector {
  DType dtype = DType::kF32;          // a float, or an integer for a table of expert numbers
  std::span<const std::byte> bytes;   // `size` elements; need not be aligned
  bool is_minus_exponential = false;  // each is -exp(x) of the x that the name means
};

class WeightSource {
 public:
  virtual ~WeightSource() = default;

  // no_tensor(); kCorrupt if parts do not fit together or have another shape; kUnsupported names
  // the quantisation and the supported ones.
  virtual Result<StoredMatrix> matrix(const MatrixRequest& request) const = 0;
  virtual Result<StoredVector> vector(std::string_view name, int stack_index, int size) const = 0;
  // The stored shape of the tensor that vector() would find; empty if it is not known, or there is
  // none.
  virtual std::vector<int64_t> shape_of(std::string_view name) const = 0;
  // Whether matrix() or vector() would find the name.
  virtual bool has(std::string_view name, int stack_index = -1) const = 0;
  // Bytes of all files.
  virtual uint64_t file_bytes() const = 0;
  // The files that views point into, if they are files.
  virtual std::span<const MappedFile* const> files() const { return {}; }
  // Whether a draft layer's norms are stored less 1, if it is in files of its own; else they are
  // stored as the model's.
  virtual std::optional<bool> lowers_draft_norms() const { return std::nullopt; }
  // Must be called before bytes of a view are touched: kNotFound, with the file, if they are not on
  // this machine because files are partial.
  virtual Status need(std::span<const std::byte> bytes) const;
};

// Whether a folder with partial files may be opened. If so, matrix() is kNotFound if it would have
// to read missing bytes, and readers of views must call need(). With kTables only the tables are
// used: views must not be touched, and pieces of the files may disappear while the source exists.
enum class PartialFiles { kRefused, kAllowed, kTables };

// kNotFound "the checkpoint has no tensor NAME": the answer of sources and checkpoints.
Error no_tensor(std::string_view name);
// Whether `path` can be a model: kNotFound or kInvalidArgument with a sentence for the user.
Status check_model_path(const std::filesystem::path& path);
// `path` is a folder with config.json and safetensors files, or a .gguf file (the first of split
// ones).
Result<std::shared_ptr<const WeightSource>> open_weight_source(
    const std::filesystem::path& path, PartialFiles partial = PartialFiles::kRefused);

}  // namespace lockstep
