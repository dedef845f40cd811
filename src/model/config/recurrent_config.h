// The fields of config.json about layers that keep a state instead of keys and values.
#pragma once

#include "json/json.h"
#include "model/config/config.h"

namespace lockstep {

// Sets `config.delta` and the mixers of the layers, if the architecture has such layers. kCorrupt
// if no layer is left that has attention.
Status read_recurrent(const Json& file, ModelConfig& config);

}  // namespace lockstep
