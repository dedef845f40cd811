#include "server/generation_options.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <random>

namespace lockstep {
namespace {

ApiResult<std::string> parse_one_stop(const Json& value) {
  if (!value.is_string()) {
    return bad_field("stop", "\"stop\" must be a string or an array of strings");
  }
  const std::string text(value.get_string());
  if (text.empty()) return bad_field("stop", "\"stop\" must not contain an empty string");
  if (text.size() > kStopBytesMax) {
    return bad_field("stop", fmt::format("a \"stop\" string may have {} bytes", kStopBytesMax));
  }
  return text;
}

ApiResult<std::vector<std::string>> parse_stop(const Json* value) {
  std::vector<std::string> stop;
  if (value == nullptr) return stop;
  if (!value->is_array()) {
    stop.push_back(TRY(parse_one_stop(*value)));
    return stop;
  }
  if (value->get_array().size() > kStopStringsMax) {
    return bad_field("stop", fmt::format("\"stop\" may have {} strings", kStopStringsMax));
  }
  for (const Json& one : value->get_array()) stop.push_back(TRY(parse_one_stop(one)));
  return stop;
}

uint64_t random_seed() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

ApiResult<Ok> refuse_unsupported(RequestFields& fields) {
  for (const char* penalty : {"presence_penalty", "frequency_penalty", "min_p"}) {
    TRY(fields.refuse(penalty, {Json(0)}));
  }
  TRY(fields.refuse("repetition_penalty", {Json(1)}));
  TRY(fields.refuse("logit_bias", {Json(JsonObject())}));
  return Ok{};
}

}  // namespace

ApiResult<GenerationOptions> parse_generation_options(RequestFields& fields) {
  constexpr int64_t kInt64Min = std::numeric_limits<int64_t>::min();
  constexpr int64_t kInt64Max = std::numeric_limits<int64_t>::max();
  GenerationOptions options;
  options.model = TRY(fields.text("model")).value_or("");
  const auto temperature = TRY(fields.number("temperature", 0, 2));
  const auto top_p = TRY(fields.number("top_p", 0, 1));
  // -1 is vLLM's way to say "all".
  const auto top_k = TRY(fields.integer("top_k", -1, std::numeric_limits<int32_t>::max()));
  if (temperature) options.temperature = static_cast<float>(*temperature);
  if (top_p) options.top_p = static_cast<float>(*top_p);
  if (top_k) options.top_k = static_cast<int32_t>(std::max<int64_t>(*top_k, 0));
  const auto seed = TRY(fields.integer("seed", kInt64Min, kInt64Max));
  options.seed = seed ? static_cast<uint64_t>(*seed) : random_seed();
  options.stop = TRY(parse_stop(fields.get("stop")));
  options.n = static_cast<int>(TRY(fields.integer("n", 1, kChoicesMax)).value_or(1));
  options.is_streamed = TRY(fields.boolean("stream")).value_or(false);
  if (const JsonObject* object = TRY(fields.object("stream_options"))) {
    RequestFields stream(*object, "stream_options.");
    options.includes_usage = TRY(stream.boolean("include_usage")).value_or(false);
    stream.get("include_obfuscation");  // padding against traffic analysis; leaving it out is fine
    options.ignored = stream.ignored();
  }
  TRY(fields.text("user"));
  TRY(refuse_unsupported(fields));
  return options;
}

SamplingOptions sampling_of(const GenerationOptions& options, const SamplingDefaults& defaults) {
  SamplingOptions sampling;
  sampling.temperature = options.temperature.value_or(defaults.temperature.value_or(1.0f));
  sampling.top_p = options.top_p.value_or(defaults.top_p.value_or(1.0f));
  sampling.top_k = options.top_k.value_or(defaults.top_k.value_or(0));
  sampling.seed = options.seed;
  return sampling;
}

}  // namespace lockstep
