// The configuration of Gemma 4 in a GGUF file, as config.json has it. For gguf_config.cc.
// Source: llama.cpp, conversion/gemma.py, class Gemma4Model.
#pragma once

#include "base/result.h"
#include "gguf/gguf_model.h"
#include "json/json.h"
#include "model/config/gguf_fields.h"

namespace lockstep {

// Adds what depends on a layer's kind, windowed or not, and the experts; `layers` is the count.
// kCorrupt or kUnsupported says what the file has instead.
Status write_gemma(const GgufModel& model, const GgufFields& fields, int64_t layers,
                   JsonObject& json);

}  // namespace lockstep
