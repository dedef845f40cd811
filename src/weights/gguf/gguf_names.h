// The GGUF architectures that lockstep knows, and the mapping of their tensors to Hugging Face's.
// Pure functions over names. Sources: llama.cpp, conversion/*.py, gguf-py/gguf/constants.py and
// tensor_mapping.py.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gguf/gguf_model.h"

namespace lockstep {

// How a file orders what the value heads of a delta rule have (gguf_order.h).
enum class DeltaOrder {
  kNone,  // there is no delta rule
  kTiled,
  kJoinedRates,
};

struct GgufArchitecture {
  std::string_view name;          // general.architecture
  std::string_view hugging_face;  // in "architectures" of config.json
  // In these models llama.cpp rotates neighbouring elements, Hugging Face an element of a head's
  // first half with one of the second: query and key heads are stored with interleaved halves.
  bool interleaves_heads = false;
  DeltaOrder delta_order = DeltaOrder::kNone;
  bool has_named_scales = false;  // "ffn_gate_inp.scale" is a weight, not a factor of a matrix
  bool may_lack_drafts = false;   // a file may count layers that it has not: gguf_layers()
};

// By general.architecture; kUnsupported names it and lists the known ones.
Result<const GgufArchitecture*> gguf_architecture(const GgufFile& metadata);

// A file's blocks: the model's own layers, then those that predict further tokens. Some files count
// the latter without having them, and then all blocks are the model's own.
struct GgufLayers {
  int64_t own = 0;
  int64_t predicting = 0;
};
Result<GgufLayers> gguf_layers(const GgufModel& model, const GgufArchitecture& architecture);

struct GgufPlace {
  std::string tensor;
  int stack_index = -1;  // in the tensor's last dimension; -1: not a stack
  // The half of a matrix's rows.
  enum class Half { kNone, kFirst, kSecond };
  Half half = Half::kNone;
};

// Possible places of the tensor that Hugging Face calls `name`, the likeliest first; empty for a
// name that no file would have. `stack_index`: see MatrixRequest. `layers`: of the model; the
// layers that predict further tokens follow.
std::vector<GgufPlace> gguf_places(std::string_view name, int stack_index, int64_t layers);

}  // namespace lockstep
