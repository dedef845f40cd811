// The WeightSource of llama.cpp's model files.
#pragma once

#include <filesystem>
#include <memory>

#include "base/result.h"
#include "weights/weight_source.h"

namespace lockstep {

Result<std::shared_ptr<const WeightSource>> open_gguf_source(const std::filesystem::path& path);

}  // namespace lockstep
