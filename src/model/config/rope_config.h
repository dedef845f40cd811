// The rope settings of config.json, in all the forms that Hugging Face has used.
#pragma once

#include "json/json.h"
#include "model/config/config.h"

namespace lockstep {

// Fills the rope fields of `config`. kUnsupported names a scaling that lockstep does not know,
// kCorrupt an invalid value.
Status read_rope(const Json& file, ModelConfig& config);
// The dimensions of each head that are rotated: "rotary_dim" or a "partial_rotary_factor", all if
// there is neither.
Result<int> read_rotary_dims(const Json& file, int head_dim);

}  // namespace lockstep
