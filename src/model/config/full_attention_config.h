// The layers of models in which they differ (Gemma 4), in config.json: sizes and rotary angles of
// those without a window; and in small models the inputs of layers, the last layers' keys and
// values, which are an earlier layer's, and their width.
#pragma once

#include "json/json.h"
#include "model/config/config.h"

namespace lockstep {

// Fills `config.full` and the angles of the other layers; sizes of these have been read.
Status read_full_attention(const Json& file, ModelConfig& config);
// Fills `config.layer_input`, and each layer's `state_layer` and `ffn`; windows have been read.
Status read_layer_differences(const Json& file, ModelConfig& config);

}  // namespace lockstep
