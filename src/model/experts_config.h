// The experts of config.json: how many, how wide, how they are chosen, and which layers have them.
#pragma once

#include "json/json.h"
#include "model/config.h"

namespace lockstep {

// Fills `config.experts` and `config.has_experts`, which are empty for an architecture without
// experts.
Status read_experts(const Json& file, ModelConfig& config);

}  // namespace lockstep
