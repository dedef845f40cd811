#include "node/wire/messages.h"

#include <cmath>

#include "node/wire/event_codec.h"
#include "node/wire/message_fields.h"

namespace lockstep {
namespace {

JsonArray message_json(const std::vector<LogitBias>& biases) {
  JsonArray array;
  for (const LogitBias& one : biases) array.push_back(JsonArray{one.token, one.bias});
  return array;
}

Result<std::vector<LogitBias>> get_logit_bias(const Json& json) {
  std::vector<LogitBias> biases;
  for (const Json& pair : TRY(need_array(json, "logit_bias"))) {
    if (!pair.is_array() || pair.get_array().size() != 2) return corrupt_message("logit_bias");
    const auto token = number_of<int32_t>(pair.get_array()[0]);
    const auto bias = number_of<float>(pair.get_array()[1]);
    if (!token || !bias || !std::isfinite(*bias)) return corrupt_message("logit_bias");
    biases.push_back({.token = *token, .bias = *bias});
  }
  return biases;
}

void add_filters(const SamplingOptions& sampling, JsonObject& object) {
  object["min_p"] = sampling.min_p;
  object["typical_p"] = sampling.typical_p;
  object["repetition_penalty"] = sampling.repetition_penalty;
  object["penalty_tokens"] = sampling.penalty_tokens;
  object["presence_penalty"] = sampling.presence_penalty;
  object["frequency_penalty"] = sampling.frequency_penalty;
  object["dry_multiplier"] = sampling.dry_multiplier;
  object["dry_base"] = sampling.dry_base;
  object["dry_allowed_length"] = sampling.dry_allowed_length;
  object["dry_tokens"] = sampling.dry_tokens;
}

Status get_filters(const Json& json, SamplingOptions& sampling) {
  sampling.min_p = TRY(need_float(json, "min_p"));
  sampling.typical_p = TRY(need_float(json, "typical_p"));
  sampling.repetition_penalty = TRY(need_float(json, "repetition_penalty"));
  sampling.penalty_tokens = TRY(need_int32(json, "penalty_tokens"));
  sampling.presence_penalty = TRY(need_float(json, "presence_penalty"));
  sampling.frequency_penalty = TRY(need_float(json, "frequency_penalty"));
  sampling.dry_multiplier = TRY(need_float(json, "dry_multiplier"));
  sampling.dry_base = TRY(need_float(json, "dry_base"));
  sampling.dry_allowed_length = TRY(need_int32(json, "dry_allowed_length"));
  sampling.dry_tokens = TRY(need_int32(json, "dry_tokens"));
  return Ok{};
}

}  // namespace

std::string encode_request(uint64_t id, const GenerateRequest& request) {
  std::string bytes = pack(id, static_cast<uint32_t>(request.prompt.size()));
  bytes += pack_span(std::span<const int32_t>(request.prompt));
  JsonObject object;
  object["max_tokens"] = request.max_tokens;
  object["stop_ids"] = json_array(request.stop_ids);
  object["temperature"] = request.sampling.temperature;
  object["top_k"] = request.sampling.top_k;
  object["top_p"] = request.sampling.top_p;
  object["seed"] = as_signed(request.sampling.seed);
  object["prompt_logits"] = request.prompt_logits;
  object["draft_logits"] = request.draft_logits;
  object["reports_progress"] = request.reports_progress;
  object["chunk"] = request.chunk;
  object["draft_tokens"] = request.draft_tokens;
  object["guess"] = json_array(request.guess);
  object["pooling"] = static_cast<int>(request.pooling);
  object["told"] = request.resumed_tokens;
  object["constraint"] = request.constraint;
  object["logit_bias"] = message_json(request.logit_bias);
  object["dry_breakers"] = json_array(request.dry_breakers);
  object["min_tokens"] = request.min_tokens;
  object["top_logprobs"] = request.top_logprobs;
  object["client"] = as_signed(request.client);
  object["priority"] = request.priority;
  add_filters(request.sampling, object);
  return bytes + dump_json(object);
}

Result<uint64_t> decode_request_id(std::string_view payload) {
  if (payload.size() < sizeof(uint64_t)) return corrupt_message("request");
  return take<uint64_t>(payload);
}

Result<std::pair<uint64_t, GenerateRequest>> decode_request(std::string_view payload) {
  if (payload.size() < sizeof(uint64_t) + sizeof(uint32_t)) return corrupt_message("request");
  const uint64_t id = take<uint64_t>(payload);
  const size_t prompt_bytes = size_t{take<uint32_t>(payload)} * sizeof(int32_t);
  if (prompt_bytes > payload.size()) return corrupt_message("prompt");
  GenerateRequest request;
  request.prompt = TRY(take_all<int32_t>(payload.substr(0, prompt_bytes), "prompt"));
  payload.remove_prefix(prompt_bytes);
  const Json json = TRY(parse_json(payload));
  request.max_tokens = TRY(need_int32(json, "max_tokens"));
  request.stop_ids = TRY(get_numbers<int32_t>(json, "stop_ids"));
  request.sampling.temperature = TRY(need_float(json, "temperature"));
  request.sampling.top_k = TRY(need_int32(json, "top_k"));
  request.sampling.top_p = TRY(need_float(json, "top_p"));
  request.sampling.seed = TRY(need_uint64(json, "seed"));
  request.prompt_logits = TRY(get_bool(json, "prompt_logits")).value_or(false);
  request.draft_logits = TRY(get_bool(json, "draft_logits")).value_or(false);
  request.reports_progress = TRY(get_bool(json, "reports_progress")).value_or(false);
  request.chunk = TRY(need_int32(json, "chunk"));
  request.draft_tokens = TRY(need_int32(json, "draft_tokens"));
  request.guess = TRY(get_numbers<int32_t>(json, "guess"));
  const int pooling = TRY(need_int32(json, "pooling"));
  if (pooling < 0 || pooling > static_cast<int>(Pooling::kMean)) return corrupt_message("pooling");
  request.pooling = static_cast<Pooling>(pooling);
  request.resumed_tokens = TRY(need_int32(json, "told"));
  if (request.resumed_tokens < 0 ||
      static_cast<size_t>(request.resumed_tokens) > request.prompt.size()) {
    return corrupt_message("told");
  }
  request.constraint = TRY(need_string(json, "constraint"));
  request.logit_bias = TRY(get_logit_bias(json));
  request.dry_breakers = TRY(get_numbers<int32_t>(json, "dry_breakers"));
  request.min_tokens = TRY(need_int32(json, "min_tokens"));
  request.top_logprobs = TRY(need_int32(json, "top_logprobs"));
  request.client = TRY(need_uint64(json, "client"));
  request.priority = TRY(need_int32(json, "priority"));
  TRY(get_filters(json, request.sampling));
  return std::pair<uint64_t, GenerateRequest>(id, std::move(request));
}

std::string encode_heartbeat(Heartbeat heartbeat) {
  return pack(heartbeat.ticks, heartbeat.state);
}

Result<Heartbeat> decode_heartbeat(std::string_view payload) {
  if (payload.size() != sizeof(uint64_t) + sizeof(int32_t)) return corrupt_message("heartbeat");
  const uint64_t ticks = take<uint64_t>(payload);
  return Heartbeat{ticks, take<int32_t>(payload)};
}

std::string encode_load_bytes(const LoadBytes& bytes) {
  return pack(bytes.read, bytes.whole);
}

Result<LoadBytes> decode_load_bytes(std::string_view payload) {
  if (payload.size() != 2 * sizeof(uint64_t)) return corrupt_message("count of bytes");
  const uint64_t read = take<uint64_t>(payload);
  return LoadBytes{read, take<uint64_t>(payload)};
}

std::string encode_link_readings(std::span<const LinkReading> links) {
  std::string bytes;
  for (const LinkReading& link : links) {
    bytes += pack(link.peer, link.bytes, link.p50_ns, link.p99_ns, link.bytes_per_us);
  }
  return bytes;
}

Result<std::vector<LinkReading>> decode_link_readings(std::string_view payload) {
  constexpr size_t kBytes = sizeof(uint64_t) + 4 * sizeof(uint32_t);
  if (payload.size() % kBytes != 0 || payload.size() / kBytes > LinkGraph::kRanksMax) {
    return corrupt_message("readings of links");
  }
  std::vector<LinkReading> links;
  while (!payload.empty()) {
    LinkReading& link = links.emplace_back();
    link.peer = take<int32_t>(payload);
    link.bytes = take<uint64_t>(payload);
    link.p50_ns = take<uint32_t>(payload);
    link.p99_ns = take<uint32_t>(payload);
    link.bytes_per_us = take<uint32_t>(payload);
    if (link.peer < 0 || (links.size() > 1 && link.peer <= links[links.size() - 2].peer)) {
      return corrupt_message("readings of links");
    }
  }
  return links;
}

std::string encode_page_counts(const PageStoreCounts& counts) {
  return pack(counts);
}

Result<PageStoreCounts> decode_page_counts(std::string_view payload) {
  if (payload.size() != sizeof(PageStoreCounts)) return corrupt_message("count of pages");
  return take<PageStoreCounts>(payload);
}

std::string encode_draft_counts(const DraftCounts& counts) {
  return pack(counts);
}

Result<DraftCounts> decode_draft_counts(std::string_view payload) {
  if (payload.size() != sizeof(DraftCounts)) return corrupt_message("count of guesses");
  return take<DraftCounts>(payload);
}

std::string encode_id(uint64_t request) {
  return pack(request);
}

Result<uint64_t> decode_id(std::string_view payload) {
  if (payload.size() != sizeof(uint64_t)) return corrupt_message("request id");
  return take<uint64_t>(payload);
}

std::string encode_error(const Error& error) {
  return pack(static_cast<int32_t>(error.code)) + cut_sentence(error.message);
}

Result<SentError> decode_error(std::string_view payload) {
  if (payload.size() < sizeof(int32_t)) return corrupt_message("error");
  const int32_t code = take<int32_t>(payload);
  if (code < 0 || code >= kErrorCodeCount || payload.size() > kErrorBytesMax) {
    return corrupt_message("error");
  }
  return SentError{{static_cast<ErrorCode>(code), std::string(payload)}};
}

}  // namespace lockstep
