// The header of a safetensors file: the place of each tensor. For Checkpoint, which models use.
// Format and rules: https://github.com/huggingface/safetensors. Like the official reader we accept
// no holes, no overlaps and no bytes after the last tensor.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "weights/safetensors/checkpoint.h"

namespace lockstep {

inline constexpr size_t kSafetensorsHeaderBytesMax = 100'000'000;  // the official reader's limit

// A valid tensor in the file whose dtype tensor/dtype.h lacks.
struct UnsupportedTensor {
  std::string name;
  std::string dtype;
};

struct SafetensorsHeader {
  std::vector<TensorView> tensors;  // in the order of their data
  std::vector<UnsupportedTensor> unsupported;
  std::string format;  // of "__metadata__": "pt", "mlx"; empty: it has none
};

// The end of the header, from a file's first bytes: never beyond the end of the file.
size_t safetensors_head_bytes(std::span<const std::byte> file);

// `file` is the whole file; only its header is read. kCorrupt names the tensor and the problem.
Result<SafetensorsHeader> read_safetensors_header(std::span<const std::byte> file);

}  // namespace lockstep
