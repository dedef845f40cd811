// The "options" of requests in Ollama's form, as what every text-generating API lets a request
// choose. Pure.
#pragma once

#include "server/generation_options.h"

namespace lockstep {

// What Ollama takes where neither the request nor the model's makers say.
inline constexpr float kOllamaTemperature = 0.8f;
inline constexpr float kOllamaTopP = 0.9f;
inline constexpr int32_t kOllamaTopK = 40;

// `fields` is the request: "model", "stream" and "options" are read. Options that say how Ollama is
// to load a model mean nothing here and are among the ignored ones.
ApiResult<GenerationOptions> parse_ollama_options(RequestFields& fields);

// Of a request that was read so.
SamplingDefaults ollama_sampling_defaults(const SamplingDefaults& of_model);

}  // namespace lockstep
