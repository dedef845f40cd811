// Reads the "options" of requests in Ollama's form into the options shared by all text-generating
// APIs. Pure.
#pragma once

#include "server/generation/generation_options.h"

namespace lockstep {

// Ollama's defaults if neither the request nor the model sets a value.
inline constexpr float kOllamaTemperature = 0.8f;
inline constexpr float kOllamaTopP = 0.9f;
inline constexpr int32_t kOllamaTopK = 40;

// `fields` is the request: reads "model", "stream" and "options". Options on how Ollama should load
// a model have no meaning here and are listed as ignored.
ApiResult<GenerationOptions> parse_ollama_options(RequestFields& fields);

// For a request read by parse_ollama_options().
SamplingDefaults ollama_sampling_defaults(const SamplingDefaults& of_model);

}  // namespace lockstep
