// Draft layers (MTP) in files of their own: conversions of a model often leave its layer out, and
// it is published by itself, or stands next to the model's files. Layouts: mlx-vlm's converters
// (https://github.com/Blaizzy/mlx-vlm, mlx_vlm/speculative/drafters) and the files of MTPLX.
#pragma once

#include <filesystem>
#include <memory>
#include <string_view>

#include "base/result.h"
#include "weights/weight_source.h"

namespace lockstep {

// The one that a model's folder has besides its own files: mtp.safetensors, mtp/model.safetensors,
// or another mtp*.safetensors, model-mtp* or model_mtp*. Empty: none.
std::filesystem::path draft_layer_in(const std::filesystem::path& model);
// Whether a folder has a draft layer alone: its config.json's model_type ends with "_mtp" or, for
// several layers, with "_dspark".
bool is_draft_layer(const std::filesystem::path& folder);

// `model` with the draft layer in `path`, a file or a folder; names that begin with `prefix` are
// the layer's. `model_folder` has the config.json for a file. Errors are those of
// open_weight_source().
Result<std::shared_ptr<const WeightSource>> with_draft_layer(
    std::shared_ptr<const WeightSource> model, const std::filesystem::path& model_folder,
    const std::filesystem::path& path, std::string_view prefix, PartialFiles partial);

}  // namespace lockstep
