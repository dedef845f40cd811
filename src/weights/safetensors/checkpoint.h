// Checkpoint: the named tensors of a Hugging Face safetensors folder (model.safetensors, or the
// files of model.safetensors.index.json) as views of memory-mapped files. Headers are checked
// completely at open: everything reachable through a view lies inside its file. Until a view is
// touched only headers are read. Immutable: any thread may read. Format:
// https://github.com/huggingface/safetensors (8-byte length, JSON header, data).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tensor/dtype.h"

namespace lockstep {

struct TensorView {
  std::string name;
  DType dtype;
  std::vector<int64_t> shape;
  std::span<const std::byte>
      bytes;            // row-major, little-endian, inside a mapped file; not necessarily aligned
  bool is_here = true;  // all of it; false only if files may be partial
};

enum class PartialFiles;
class MappedFile;

class Checkpoint {
 public:
  // `folder` holds the safetensors files. kNotFound, kCorrupt or kUnsupported with the file, the
  // tensor and the problem. A file that is only partly on this machine is kNotFound if `partial`
  // refuses it, or if its header is missing.
  static Result<std::shared_ptr<const Checkpoint>> open(const std::filesystem::path& folder,
                                                        PartialFiles partial);
  static Result<std::shared_ptr<const Checkpoint>> open(const std::filesystem::path& folder);
  // The same for one file.
  static Result<std::shared_ptr<const Checkpoint>> open_file(const std::filesystem::path& file,
                                                             PartialFiles partial);
  // Views one whole safetensors file in memory, which must outlive it.
  static Result<std::shared_ptr<const Checkpoint>> view(std::span<const std::byte> file);
  ~Checkpoint();

  // kNotFound "the checkpoint has no tensor NAME".
  Result<const TensorView*> tensor(std::string_view name) const;
  // Also true for tensors of an unknown dtype; tensor() returns kUnsupported for these, with the
  // dtype.
  bool has(std::string_view name) const;
  // Without tensors of unknown dtypes.
  std::span<const TensorView> tensors() const;
  // The library for which its files were written, as their headers say: "pt", "mlx"; or empty.
  const std::string& format() const;
  // The sum over all files, including headers.
  uint64_t file_bytes() const;
  // The tensors are in mapped files: made by open(), not view().
  bool is_mapped() const;
  std::span<const MappedFile> files() const;

 private:
  struct Impl;
  explicit Checkpoint(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// The header of one safetensors file, checked: for Checkpoint, and for the fuzz target. `file` is
// the whole file.
Result<std::vector<TensorView>> parse_safetensors(std::span<const std::byte> file);

}  // namespace lockstep
