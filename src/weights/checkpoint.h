// Checkpoint: the named tensors of a Hugging Face safetensors folder (model.safetensors, or the
// files of model.safetensors.index.json) as views of memory-mapped files. Headers are checked
// completely at open: whatever is reachable through a view lies inside its file. Nothing is read
// but headers until a view is touched. Immutable: any thread may read. Format:
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
  bool is_here = true;  // all of it; false only where files may be partial
};

enum class PartialFiles;
class MappedFile;

class Checkpoint {
 public:
  // `folder` holds the safetensors files. kNotFound, kCorrupt or kUnsupported with the file, the
  // tensor and what is wrong.
  // A file of which only a part is on this machine: kNotFound where that is refused, or where its
  // header is not here.
  static Result<std::shared_ptr<const Checkpoint>> open(const std::filesystem::path& folder,
                                                        PartialFiles partial);
  static Result<std::shared_ptr<const Checkpoint>> open(const std::filesystem::path& folder);
  // Of one whole safetensors file in memory, which outlives it.
  static Result<std::shared_ptr<const Checkpoint>> view(std::span<const std::byte> file);
  ~Checkpoint();

  // kNotFound "the checkpoint has no tensor NAME".
  Result<const TensorView*> tensor(std::string_view name) const;
  // Tensors of a dtype that lockstep does not know count; asking for one is kUnsupported with the
  // dtype.
  bool has(std::string_view name) const;
  // Those of unknown dtypes are left out.
  std::span<const TensorView> tensors() const;
  // Of all files, with their headers.
  uint64_t file_bytes() const;
  // The tensors lie in mapped files: open() made it, not view().
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
