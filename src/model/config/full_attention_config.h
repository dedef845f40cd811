// The layers without a window of models where these differ from the others: Gemma 4's sizes and
// rotary angles in config.json.
#pragma once

#include "json/json.h"
#include "model/config/config.h"

namespace lockstep {

// Fills `config.full` and the angles of the other layers; sizes of these have been read.
Status read_full_attention(const Json& file, ModelConfig& config);

}  // namespace lockstep
