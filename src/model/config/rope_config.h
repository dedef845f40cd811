// The rope settings of config.json, in all the forms that Hugging Face has used.
#pragma once

#include "json/json.h"
#include "model/config/config.h"

namespace lockstep {

// Fills the rope fields of `config`. kUnsupported names a scaling that lockstep does not know,
// kCorrupt an invalid value.
Status read_rope(const Json& file, ModelConfig& config);
// The part of each head that is rotated: "partial_rotary_factor", 1 if there is none.
Result<double> read_rotated_part(const Json& file);

}  // namespace lockstep
