// The weights of a GGUF model under the names of Hugging Face's model classes. For
// open_weight_source(), and for the fuzz target.
#pragma once

#include <filesystem>
#include <memory>

#include "base/result.h"
#include "gguf/gguf_model.h"
#include "weights/weight_source.h"

namespace lockstep {

// `path` is a .gguf file, or any part of a split one, preferably the first. kUnsupported names an
// unknown architecture and lists the known ones.
Result<std::shared_ptr<const WeightSource>> open_gguf_source(const std::filesystem::path& path);
Result<std::shared_ptr<const WeightSource>> make_gguf_source(GgufModel model);

}  // namespace lockstep
