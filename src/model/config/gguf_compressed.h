// The values of compressed attention and of residual streams in a GGUF file (DeepSeek V4), as
// config.json has them. For gguf_config.cc.
// Source: llama.cpp, src/models/deepseek4.cpp and conversion/deepseek.py.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "json/json.h"
#include "model/config/gguf_fields.h"

namespace lockstep {

// `layers`: the model's own. Errors name the value.
Status write_gguf_compressed(const GgufFields& fields, int64_t layers, JsonObject& json);

}  // namespace lockstep
