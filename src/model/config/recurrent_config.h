// The fields of config.json about layers that keep a state of their sequence: instead of keys and
// values, or of n-grams.
#pragma once

#include "json/json.h"
#include "model/config/config.h"

namespace lockstep {

// Sets `config.delta` and the mixers of the layers, if the architecture has such layers. kCorrupt
// if no layer is left that has attention.
Status read_recurrent(const Json& file, ModelConfig& config);
// Sets `config.ngrams` and the layer that adds them, if the architecture has tables of n-grams.
Status read_ngrams(const Json& file, ModelConfig& config);

}  // namespace lockstep
