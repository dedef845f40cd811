// The rope settings of config.json, in the forms that Hugging Face has had.
#pragma once

#include "json/json.h"
#include "model/config.h"

namespace lockstep {

// Fills the rope fields of `config`. kUnsupported names a scaling that lockstep does not know,
// kCorrupt what makes no sense.
Status read_rope(const Json& file, ModelConfig& config);

}  // namespace lockstep
