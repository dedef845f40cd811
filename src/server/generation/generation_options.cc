#include "server/generation/generation_options.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <random>

#include "engine/choices/choice_orders.h"

namespace lockstep {
namespace {

ApiResult<std::string> parse_one_stop(const Json& value) {
  if (!value.is_string()) {
    return bad_field("stop", "\"stop\" must be a string or an array of strings");
  }
  const std::string text(value.get_string());
  if (text.empty()) return bad_field("stop", "\"stop\" must not contain an empty string");
  if (text.size() > kStopBytesMax) {
    return bad_field("stop",
                     fmt::format("a \"stop\" string may have at most {} bytes", kStopBytesMax));
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
    return bad_field("stop", fmt::format("\"stop\" may have at most {} strings", kStopStringsMax));
  }
  for (const Json& one : value->get_array()) {
    TRY(check_work());
    stop.push_back(TRY(parse_one_stop(one)));
  }
  return stop;
}

uint64_t random_seed() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

constexpr int64_t kInt32Max = std::numeric_limits<int32_t>::max();

// "logit_bias": {"50256": -100}
ApiResult<std::vector<LogitBias>> parse_logit_bias(RequestFields& fields) {
  constexpr const char* kName = "logit_bias";
  std::vector<LogitBias> biases;
  const JsonObject* object = TRY(fields.object(kName));
  if (object == nullptr) return biases;
  if (object->size() > kLogitBiasMax) {
    return bad_field(kName,
                     fmt::format("\"logit_bias\" may have at most {} tokens", kLogitBiasMax));
  }
  RequestFields by_token(*object, "logit_bias.");
  for (const auto& field : *object) {
    TRY(check_work());
    const std::string_view key(field.key().data(), field.key().size());
    int32_t token = -1;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), token);
    if (error != std::errc() || end != key.data() + key.size() || token < 0) {
      return bad_field(kName, fmt::format("\"logit_bias\" must be an object from token ids to "
                                          "numbers, and \"{}\" is not a token id",
                                          key.substr(0, 64)));
    }
    const auto bias = TRY(by_token.number(key, -100, 100));
    if (bias) biases.push_back({token, static_cast<float>(*bias)});
  }
  return biases;
}

ApiResult<std::vector<std::string>> parse_dry_breakers(RequestFields& fields,
                                                       std::vector<std::string> usual) {
  constexpr const char* kName = "dry_sequence_breakers";
  const Json* value = fields.get(kName);
  if (value == nullptr) return usual;
  std::vector<std::string> breakers;
  const bool is_list =
      value->is_array() && value->get_array().size() <= kDryBreakerStringsMax &&
      std::all_of(value->get_array().begin(), value->get_array().end(), [](const Json& one) {
        return one.is_string() && !one.get_string().empty() &&
               one.get_string().size() <= kStopBytesMax;
      });
  if (!is_list) {
    return bad_field(kName, fmt::format("\"{}\" must be an array of up to {} strings of 1 to {} "
                                        "bytes",
                                        kName, kDryBreakerStringsMax, kStopBytesMax));
  }
  for (const Json& one : value->get_array()) breakers.emplace_back(one.get_string());
  return breakers;
}

// Sets `to` if the request has the field.
ApiResult<Ok> read(RequestFields& fields, const char* key, double least, double most, float& to) {
  const auto value = TRY(fields.number(key, least, most));
  if (value) to = static_cast<float>(*value);
  return Ok{};
}

ApiResult<Ok> read(RequestFields& fields, const char* key, int64_t least, int32_t& to) {
  const auto value = TRY(fields.integer(key, least, kInt32Max));
  if (value) to = static_cast<int32_t>(*value);
  return Ok{};
}

// OpenAI's names, and names of vLLM and llama.cpp for options that OpenAI's API lacks.
ApiResult<SamplingOptions> parse_sampling(RequestFields& fields) {
  SamplingOptions sampling;
  TRY(read(fields, "min_p", 0, 1, sampling.min_p));
  TRY(read(fields, "typical_p", 0, 1, sampling.typical_p));
  TRY(read(fields, "repeat_penalty", 0.01, 10, sampling.repetition_penalty));
  TRY(read(fields, "repetition_penalty", 0.01, 10, sampling.repetition_penalty));
  TRY(read(fields, "repeat_last_n", -1, sampling.penalty_tokens));
  TRY(read(fields, "presence_penalty", -2, 2, sampling.presence_penalty));
  TRY(read(fields, "frequency_penalty", -2, 2, sampling.frequency_penalty));
  TRY(read(fields, "dry_multiplier", 0, 100, sampling.dry_multiplier));
  TRY(read(fields, "dry_base", 1, 100, sampling.dry_base));
  TRY(read(fields, "dry_allowed_length", 0, sampling.dry_allowed_length));
  TRY(read(fields, "dry_penalty_last_n", -1, sampling.dry_tokens));
  return sampling;
}

}  // namespace

ApiResult<GenerationOptions> parse_generation_options(RequestFields& fields) {
  constexpr int64_t kInt64Min = std::numeric_limits<int64_t>::min();
  constexpr int64_t kInt64Max = std::numeric_limits<int64_t>::max();
  GenerationOptions options;
  options.model = TRY(fields.text("model")).value_or("");
  const auto temperature = TRY(fields.number("temperature", 0, 2));
  const auto top_p = TRY(fields.number("top_p", 0, 1));
  // -1 means "all" in vLLM.
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
    options.extras.usage = TRY(stream.boolean("include_usage")).value_or(false);
    options.extras.timings = TRY(stream.boolean("include_timings")).value_or(false);
    options.extras.progress = TRY(stream.boolean("include_progress")).value_or(false);
    options.extras.events = TRY(stream.boolean("include_events")).value_or(false);
    options.extras.receipt = TRY(stream.boolean("include_receipt")).value_or(false);
    stream.get("include_obfuscation");  // padding against traffic analysis; leaving it out is fine
    options.ignored = stream.ignored();
  }
  TRY(fields.text("user"));
  options.sampling = TRY(parse_sampling(fields));
  options.dry_breakers = TRY(parse_dry_breakers(fields, std::move(options.dry_breakers)));
  options.logit_bias = TRY(parse_logit_bias(fields));
  TRY(read(fields, "min_tokens", 0, options.min_tokens));
  options.ignores_end = TRY(fields.boolean("ignore_eos")).value_or(false);
  return options;
}

SamplingOptions sampling_of(const GenerationOptions& options, const SamplingDefaults& defaults) {
  SamplingOptions sampling = options.sampling;
  sampling.temperature = options.temperature.value_or(defaults.temperature.value_or(1.0f));
  sampling.top_p = options.top_p.value_or(defaults.top_p.value_or(1.0f));
  sampling.top_k = options.top_k.value_or(defaults.top_k.value_or(0));
  sampling.seed = options.seed;
  return sampling;
}

std::vector<int32_t> dry_breaker_tokens(const GenerationOptions& options,
                                        const Tokenizer& tokenizer) {
  std::vector<int32_t> tokens;
  if (options.sampling.dry_multiplier == 0) return tokens;
  for (const std::string& breaker : options.dry_breakers) {
    const auto ids = tokenizer.encode("a" + breaker, {});
    if (!ids.empty()) tokens.push_back(ids.back());
  }
  return tokens;
}

}  // namespace lockstep
