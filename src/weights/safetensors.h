// The header of a safetensors file: which tensor lies where. For Checkpoint; a model asks that.
// Format and rules: https://github.com/huggingface/safetensors. Like the official reader we accept
// no hole, no overlap and no byte behind the last tensor.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "weights/checkpoint.h"

namespace lockstep {

inline constexpr size_t kSafetensorsHeaderBytesMax = 100'000'000;  // the official reader's limit

// A tensor that lies properly in the file, of a dtype that tensor/dtype.h lacks.
struct UnsupportedTensor {
  std::string name;
  std::string dtype;
};

struct SafetensorsHeader {
  std::vector<TensorView> tensors;  // in the order of their data
  std::vector<UnsupportedTensor> unsupported;
};

// How far the header reaches, by the first bytes of a file: never beyond the file's end.
size_t safetensors_head_bytes(std::span<const std::byte> file);

// `file` is the whole file; only its header is read. kCorrupt with the tensor and what is wrong.
Result<SafetensorsHeader> read_safetensors_header(std::span<const std::byte> file);

}  // namespace lockstep
