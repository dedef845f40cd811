#include "server/ollama/ollama_options.h"

#include <limits>

namespace lockstep {

ApiResult<GenerationOptions> parse_ollama_options(RequestFields& fields) {
  const JsonObject none;
  const JsonObject* given = TRY(fields.object("options"));
  RequestFields inner(given == nullptr ? none : *given, "options.");
  GenerationOptions options = TRY(parse_generation_options(inner));
  RequestFields nothing(none);
  const auto seed = TRY(inner.integer("seed", std::numeric_limits<int64_t>::min(),
                                      std::numeric_limits<int64_t>::max()));
  if (seed && *seed < 0)
    options.seed = TRY(parse_generation_options(nothing)).seed;  // a random one
  // -1: no limit, -2: until the context is full, 0: as if missing.
  const auto most = TRY(inner.integer("num_predict", -2, std::numeric_limits<int32_t>::max()));
  if (most && *most > 0) options.max_tokens = static_cast<int>(*most);
  TRY(inner.refuse("mirostat", {Json(0)}));
  TRY(inner.refuse("tfs_z", {Json(1)}));
  inner.get("mirostat_tau");  // no effect without mirostat
  inner.get("mirostat_eta");
  for (std::string& name : inner.ignored()) options.ignored.push_back(std::move(name));
  options.n = 1;
  options.model = TRY(fields.text("model")).value_or("");
  options.is_streamed = TRY(fields.boolean("stream")).value_or(true);
  return options;
}

SamplingDefaults ollama_sampling_defaults(const SamplingDefaults& of_model) {
  return {.temperature = of_model.temperature.value_or(kOllamaTemperature),
          .top_p = of_model.top_p.value_or(kOllamaTopP),
          .top_k = of_model.top_k.value_or(kOllamaTopK)};
}

}  // namespace lockstep
