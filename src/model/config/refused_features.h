// Features of config.json that would change the numbers and that the forward pass does not compute.
// Used by the reader of ModelConfig.
#pragma once

#include "model/config/config_fields.h"

namespace lockstep {

struct Architecture;

// The first one is an error that names its key.
Status refuse_unknown_features(const Json& file, const Architecture& architecture);

}  // namespace lockstep
