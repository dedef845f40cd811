// The draft layers of a model in config.json. Used by the reader of ModelConfig.
#pragma once

#include "base/result.h"
#include "json/json.h"
#include "model/config/config.h"

namespace lockstep {

// After everything else but the layers' traits. kUnsupported or kCorrupt as parse_config().
Status read_draft(const Json& file, ModelConfig& config);

}  // namespace lockstep
