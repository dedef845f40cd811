// The experts of config.json: their number, width and choice, and the layers that have them.
#pragma once

#include "json/json.h"
#include "model/config/config.h"

namespace lockstep {

// Fills `config.experts` and `has_experts` of each layer.
Status read_experts(const Json& file, ModelConfig& config);

}  // namespace lockstep
