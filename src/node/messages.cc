#include "node/messages.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "json/json.h"
#include "weights/quantise.h"

namespace lockstep {
namespace {

constexpr int kErrorCodeCount = static_cast<int>(ErrorCode::kInternal) + 1;

Error corrupt(std::string_view what) {
  return Error{ErrorCode::kCorrupt, fmt::format("a control message has a bad {}", what)};
}

// Plain values one after the other.
template <class... Values>
std::string pack(const Values&... values) {
  static_assert((std::is_trivially_copyable_v<Values> && ...));
  std::string bytes;
  bytes.reserve((sizeof(Values) + ...));
  (bytes.append(reinterpret_cast<const char*>(&values), sizeof(Values)), ...);
  return bytes;
}

template <class Value>
Value take(std::string_view& bytes) {
  Value value{};
  std::memcpy(&value, bytes.data(), sizeof(Value));
  bytes.remove_prefix(sizeof(Value));
  return value;
}

template <class Value>
std::string pack_span(std::span<const Value> values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size_bytes());
}

template <class Value>
Result<std::vector<Value>> take_all(std::string_view bytes, std::string_view what) {
  if (bytes.size() % sizeof(Value) != 0) return corrupt(what);
  std::vector<Value> values(bytes.size() / sizeof(Value));
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

template <class Value>
JsonArray json_array(const std::vector<Value>& values) {
  JsonArray array;
  array.reserve(values.size());
  for (const Value& value : values) array.emplace_back(value);
  return array;
}

template <class Value>
Result<std::vector<Value>> get_numbers(const Json& object, std::string_view key) {
  const Json* array = find(object, key);
  if (!array || !array->is_array()) return corrupt(key);
  std::vector<Value> values;
  values.reserve(array->get_array().size());
  for (const Json& element : array->get_array()) {
    boost::system::error_code error;
    values.push_back(element.to_number<Value>(error));
    if (error) return corrupt(key);
  }
  return values;
}

// Ids and seeds use all 64 bits; JSON's integers are signed here.
int64_t as_signed(uint64_t value) {
  return static_cast<int64_t>(value);
}

Result<int64_t> need_int(const Json& object, std::string_view key) {
  const std::optional<int64_t> value = TRY(get_int(object, key));
  if (!value) return corrupt(key);
  return *value;
}

Result<int> need_int32(const Json& object, std::string_view key) {
  const int64_t value = TRY(need_int(object, key));
  if (value < INT32_MIN || value > INT32_MAX) return corrupt(key);
  return static_cast<int>(value);
}

Result<uint64_t> need_uint64(const Json& object, std::string_view key) {
  return static_cast<uint64_t>(TRY(need_int(object, key)));
}

Result<double> need_double(const Json& object, std::string_view key) {
  const std::optional<double> value = TRY(get_double(object, key));
  if (!value) return corrupt(key);
  return *value;
}

Result<float> need_float(const Json& object, std::string_view key) {
  const double value = TRY(need_double(object, key));
  if (!(std::abs(value) <= std::numeric_limits<float>::max())) return corrupt(key);
  return static_cast<float>(value);
}

Result<std::string> need_string(const Json& object, std::string_view key) {
  std::optional<std::string> value = TRY(get_string(object, key));
  if (!value) return corrupt(key);
  return std::move(*value);
}

// A reference into `object`, which must outlive it.
Result<std::span<const Json>> need_array(const Json& object, std::string_view key) {
  const Json* array = find(object, key);
  if (!array || !array->is_array()) return corrupt(key);
  const JsonArray& elements = array->get_array();
  return std::span<const Json>(elements.data(), elements.size());
}

JsonObject json_of(const LinkOptions& link) {
  return {{"kind", link_kind_name(link.kind)},
          {"topology", topology_name(link.topology)},
          {"stages", link.stages},
          {"rails", link.rails},
          {"encrypts", link.encrypts},
          {"plain", link.plain},
          {"delay_us", link.delay_us},
          {"gbit_s", link.gbit_s}};
}

Result<LinkOptions> get_link(const Json& object) {
  const Json* json = find(object, "link");
  if (!json || !json->is_object()) return corrupt("link");
  LinkOptions link;
  link.kind = TRY(parse_link_kind(TRY(need_string(*json, "kind"))));
  link.topology = TRY(parse_topology(TRY(need_string(*json, "topology"))));
  link.stages = TRY(need_int32(*json, "stages"));
  link.rails = TRY(need_int32(*json, "rails"));
  link.encrypts = TRY(get_bool(*json, "encrypts")).value_or(false);
  link.plain = TRY(get_bool(*json, "plain")).value_or(false);
  link.delay_us = TRY(need_int32(*json, "delay_us"));
  link.gbit_s = TRY(need_double(*json, "gbit_s"));
  return link;
}

JsonArray json_of(std::span<const PairTimes> pairs) {
  JsonArray array;
  for (const PairTimes& pair : pairs) {
    array.push_back(JsonObject{{"a", pair.a},
                               {"b", pair.b},
                               {"p50_us", pair.p50_us},
                               {"p99_us", pair.p99_us},
                               {"gbit_s", pair.gbit_s}});
  }
  return array;
}

Result<PairTimes> get_pair(const Json& json) {
  PairTimes pair;
  pair.a = TRY(need_int32(json, "a"));
  pair.b = TRY(need_int32(json, "b"));
  pair.p50_us = TRY(need_double(json, "p50_us"));
  pair.p99_us = TRY(need_double(json, "p99_us"));
  pair.gbit_s = TRY(need_double(json, "gbit_s"));
  return pair;
}

}  // namespace

std::string encode_setup(const WorkerSetup& setup) {
  JsonObject object;
  object["model"] = setup.model;
  object["rank"] = setup.rank;
  object["shares"] = json_array(setup.shares);
  object["link"] = json_of(setup.link);
  object["wire"] = wire_name(setup.wire);
  object["algorithm"] = sum_algorithm_name(setup.algorithm);
  object["threads"] = setup.threads;
  object["first_core"] = setup.first_core;
  object["context"] = setup.context;
  object["sequences_max"] = setup.sequences_max;
  object["batch_tokens_max"] = setup.batch_tokens_max;
  object["device"] = setup.device;
  object["exact"] = setup.exact;
  object["bits"] = setup.bits;
  object["group_timeout_ms"] = setup.group_timeout_ms;
  object["bench_bytes"] = as_signed(setup.bench_bytes);
  object["bench_rounds"] = setup.bench_rounds;
  object["probes"] = setup.probes;
  return dump_json(object);
}

Result<WorkerSetup> decode_setup(std::string_view payload) {
  const Json json = TRY(parse_json(payload));
  WorkerSetup setup;
  setup.model = TRY(need_string(json, "model"));
  setup.rank = TRY(need_int32(json, "rank"));
  setup.shares = TRY(get_numbers<double>(json, "shares"));
  setup.link = TRY(get_link(json));
  setup.wire = TRY(parse_wire(TRY(need_string(json, "wire"))));
  setup.algorithm = TRY(parse_sum_algorithm(TRY(need_string(json, "algorithm"))));
  setup.threads = TRY(need_int32(json, "threads"));
  setup.first_core = TRY(need_int32(json, "first_core"));
  setup.context = TRY(need_int32(json, "context"));
  setup.sequences_max = TRY(need_int32(json, "sequences_max"));
  setup.batch_tokens_max = TRY(need_int32(json, "batch_tokens_max"));
  setup.device = TRY(need_string(json, "device"));
  setup.exact = TRY(get_bool(json, "exact")).value_or(false);
  setup.bits = TRY(need_int32(json, "bits"));
  setup.group_timeout_ms = TRY(need_int32(json, "group_timeout_ms"));
  setup.bench_bytes = TRY(need_uint64(json, "bench_bytes"));
  setup.bench_rounds = TRY(need_int32(json, "bench_rounds"));
  setup.probes = TRY(get_bool(json, "probes")).value_or(false);
  if (setup.bits != 0 && !is_affine_bits(setup.bits)) return corrupt("bits");
  if (setup.rank < 0 || setup.rank >= setup.size()) return corrupt("rank");
  if (setup.link.stages < 1 || setup.size() % setup.link.stages != 0) return corrupt("stages");
  return setup;
}

std::string encode_epoch(const EpochSetup& setup) {
  return pack(setup.epoch) + setup.token;
}

Result<EpochSetup> decode_epoch(std::string_view payload) {
  if (payload.size() < sizeof(uint64_t)) return corrupt("epoch");
  const uint64_t epoch = take<uint64_t>(payload);
  return EpochSetup{epoch, std::string(payload)};
}

std::string encode_epoch_report(const EpochReport& report) {
  JsonArray links;
  for (const LinkUse& link : report.links) {
    links.push_back(JsonObject{{"peer", link.peer},
                               {"path", link_path_name(link.path)},
                               {"rails", link.rails},
                               {"tcp_rails", link.tcp_rails},
                               {"is_encrypted", link.is_encrypted},
                               {"reason", link.reason}});
  }
  return dump_json(JsonObject{{"epoch", as_signed(report.epoch)},
                              {"late_calls", as_signed(report.late_calls)},
                              {"late_frames", as_signed(report.late_frames)},
                              {"links", std::move(links)},
                              {"pairs", json_of(report.pairs)}});
}

Result<EpochReport> decode_epoch_report(std::string_view payload) {
  const Json json = TRY(parse_json(payload));
  EpochReport report;
  report.epoch = TRY(need_uint64(json, "epoch"));
  report.late_calls = TRY(need_uint64(json, "late_calls"));
  report.late_frames = TRY(need_uint64(json, "late_frames"));
  for (const Json& link : TRY(need_array(json, "links"))) {
    LinkUse& use = report.links.emplace_back();
    use.peer = TRY(need_int32(link, "peer"));
    use.path = TRY(parse_link_path(TRY(need_string(link, "path"))));
    use.rails = TRY(need_int32(link, "rails"));
    use.tcp_rails = TRY(need_int32(link, "tcp_rails"));
    use.is_encrypted = TRY(get_bool(link, "is_encrypted")).value_or(false);
    use.reason = TRY(need_string(link, "reason"));
  }
  for (const Json& pair : TRY(need_array(json, "pairs"))) {
    report.pairs.push_back(TRY(get_pair(pair)));
  }
  return report;
}

std::string encode_ports(std::span<const int> ports) {
  return pack_span(ports);
}

Result<std::vector<int>> decode_ports(std::string_view payload) {
  return take_all<int>(payload, "list of ports");
}

namespace {

JsonArray json_of(const std::vector<LogitBias>& biases) {
  JsonArray array;
  for (const LogitBias& one : biases) array.push_back(JsonArray{one.token, one.bias});
  return array;
}

Result<std::vector<LogitBias>> get_logit_bias(const Json& json) {
  std::vector<LogitBias> biases;
  for (const Json& pair : TRY(need_array(json, "logit_bias"))) {
    if (!pair.is_array() || pair.get_array().size() != 2) return corrupt("logit_bias");
    boost::system::error_code error;
    LogitBias one;
    one.token = pair.get_array()[0].to_number<int32_t>(error);
    if (error) return corrupt("logit_bias");
    one.bias = pair.get_array()[1].to_number<float>(error);
    if (error || !std::isfinite(one.bias)) return corrupt("logit_bias");
    biases.push_back(one);
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
  JsonObject object;
  object["id"] = as_signed(id);
  object["prompt"] = json_array(request.prompt);
  object["max_tokens"] = request.max_tokens;
  object["stop_ids"] = json_array(request.stop_ids);
  object["temperature"] = request.sampling.temperature;
  object["top_k"] = request.sampling.top_k;
  object["top_p"] = request.sampling.top_p;
  object["seed"] = as_signed(request.sampling.seed);
  object["prompt_logits"] = request.prompt_logits;
  object["chunk"] = request.chunk;
  object["draft_tokens"] = request.draft_tokens;
  object["pooling"] = static_cast<int>(request.pooling);
  object["told"] = request.told;
  object["constraint"] = request.constraint;
  object["logit_bias"] = json_of(request.logit_bias);
  object["dry_breakers"] = json_array(request.dry_breakers);
  object["min_tokens"] = request.min_tokens;
  object["top_logprobs"] = request.top_logprobs;
  object["client"] = as_signed(request.client);
  object["priority"] = request.priority;
  add_filters(request.sampling, object);
  return dump_json(object);
}

Result<std::pair<uint64_t, GenerateRequest>> decode_request(std::string_view payload) {
  const Json json = TRY(parse_json(payload));
  const uint64_t id = TRY(need_uint64(json, "id"));
  GenerateRequest request;
  request.prompt = TRY(get_numbers<int32_t>(json, "prompt"));
  request.max_tokens = TRY(need_int32(json, "max_tokens"));
  request.stop_ids = TRY(get_numbers<int32_t>(json, "stop_ids"));
  request.sampling.temperature = TRY(need_float(json, "temperature"));
  request.sampling.top_k = TRY(need_int32(json, "top_k"));
  request.sampling.top_p = TRY(need_float(json, "top_p"));
  request.sampling.seed = TRY(need_uint64(json, "seed"));
  request.prompt_logits = TRY(get_bool(json, "prompt_logits")).value_or(false);
  request.chunk = TRY(need_int32(json, "chunk"));
  request.draft_tokens = TRY(need_int32(json, "draft_tokens"));
  const int pooling = TRY(need_int32(json, "pooling"));
  if (pooling < 0 || pooling > static_cast<int>(Pooling::kMean)) return corrupt("pooling");
  request.pooling = static_cast<Pooling>(pooling);
  request.told = TRY(need_int32(json, "told"));
  if (request.told < 0 || static_cast<size_t>(request.told) > request.prompt.size()) {
    return corrupt("told");
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

std::string encode_report(const LoadReport& report) {
  JsonObject object;
  object["weight_bytes"] = as_signed(report.weight_bytes);
  object["read_bytes"] = as_signed(report.read_bytes);
  object["token_bytes"] = as_signed(report.token_bytes);
  object["state_bytes"] = as_signed(report.state_bytes);
  object["context"] = report.context;
  object["vocab_size"] = report.vocab_size;
  JsonArray quantised;
  for (const TensorError& tensor : report.quantised.tensors()) {
    quantised.push_back(JsonObject{{"name", tensor.name},
                                   {"bits", tensor.bits},
                                   {"weights", as_signed(tensor.weights)},
                                   {"squared_error", tensor.error.squared_error},
                                   {"squared_weight", tensor.error.squared_weight},
                                   {"largest", tensor.error.largest}});
  }
  object["quantised"] = std::move(quantised);
  return dump_json(object);
}

Result<TensorError> decode_tensor_error(const Json& json) {
  TensorError tensor;
  tensor.name = TRY(need_string(json, "name"));
  tensor.bits = TRY(need_int32(json, "bits"));
  tensor.weights = TRY(need_uint64(json, "weights"));
  tensor.error.squared_error = TRY(need_double(json, "squared_error"));
  tensor.error.squared_weight = TRY(need_double(json, "squared_weight"));
  tensor.error.largest = static_cast<float>(TRY(need_double(json, "largest")));
  return tensor;
}

Result<LoadReport> decode_report(std::string_view payload) {
  const Json json = TRY(parse_json(payload));
  LoadReport report;
  report.weight_bytes = TRY(need_uint64(json, "weight_bytes"));
  report.read_bytes = TRY(need_uint64(json, "read_bytes"));
  report.token_bytes = TRY(need_uint64(json, "token_bytes"));
  report.state_bytes = TRY(need_uint64(json, "state_bytes"));
  report.context = TRY(need_int32(json, "context"));
  report.vocab_size = TRY(need_int32(json, "vocab_size"));
  for (const Json& tensor : TRY(need_array(json, "quantised"))) {
    report.quantised.add(TRY(decode_tensor_error(tensor)));
  }
  return report;
}

std::string encode_heartbeat(Heartbeat heartbeat) {
  return pack(heartbeat.ticks, heartbeat.state);
}

Result<Heartbeat> decode_heartbeat(std::string_view payload) {
  if (payload.size() != sizeof(uint64_t) + sizeof(int32_t)) return corrupt("heartbeat");
  const uint64_t ticks = take<uint64_t>(payload);
  return Heartbeat{ticks, take<int32_t>(payload)};
}

std::string encode_start(uint64_t request, int cached_tokens) {
  return pack(request, static_cast<int32_t>(cached_tokens));
}

Result<std::pair<uint64_t, int>> decode_start(std::string_view payload) {
  if (payload.size() != sizeof(uint64_t) + sizeof(int32_t)) return corrupt("start");
  const uint64_t request = take<uint64_t>(payload);
  const int cached_tokens = take<int32_t>(payload);
  if (cached_tokens < 0) return corrupt("start");
  return std::pair<uint64_t, int>(request, cached_tokens);
}

std::string encode_token(uint64_t request, int32_t token) {
  return pack(request, token);
}

Result<std::pair<uint64_t, int32_t>> decode_token(std::string_view payload) {
  if (payload.size() != sizeof(uint64_t) + sizeof(int32_t)) return corrupt("token");
  const uint64_t request = take<uint64_t>(payload);
  return std::pair<uint64_t, int32_t>(request, take<int32_t>(payload));
}

std::string encode_logprobs(uint64_t request, std::span<const TokenLogprob> logprobs) {
  return pack(request) + pack_span(logprobs);
}

Result<std::pair<uint64_t, std::vector<TokenLogprob>>> decode_logprobs(std::string_view payload) {
  constexpr size_t kMost = sizeof(uint64_t) + (kTopLogprobsMax + 1) * sizeof(TokenLogprob);
  if (payload.size() <= sizeof(uint64_t) || payload.size() > kMost) return corrupt("logprobs");
  const uint64_t request = take<uint64_t>(payload);
  return std::pair(request, TRY(take_all<TokenLogprob>(payload, "list of logprobs")));
}

std::string encode_logits(uint64_t request, std::span<const float> row) {
  return pack(request) + pack_span(row);
}

Result<std::pair<uint64_t, std::vector<float>>> decode_logits(std::string_view payload) {
  if (payload.size() < sizeof(uint64_t)) return corrupt("row of logits");
  const uint64_t request = take<uint64_t>(payload);
  return std::pair<uint64_t, std::vector<float>>(request,
                                                 TRY(take_all<float>(payload, "row of logits")));
}

std::string encode_end(uint64_t request, FinishReason reason) {
  return pack(request, static_cast<int32_t>(reason));
}

Result<std::pair<uint64_t, FinishReason>> decode_end(std::string_view payload) {
  if (payload.size() != sizeof(uint64_t) + sizeof(int32_t)) return corrupt("end");
  const uint64_t request = take<uint64_t>(payload);
  const int32_t reason = take<int32_t>(payload);
  if (reason < 0 || reason > static_cast<int32_t>(FinishReason::kLength)) return corrupt("end");
  return std::pair<uint64_t, FinishReason>(request, static_cast<FinishReason>(reason));
}

std::string encode_id(uint64_t request) {
  return pack(request);
}

Result<uint64_t> decode_id(std::string_view payload) {
  if (payload.size() != sizeof(uint64_t)) return corrupt("request id");
  return take<uint64_t>(payload);
}

std::string encode_error(uint64_t request, const Error& error) {
  return pack(request, static_cast<int32_t>(error.code)) + error.message;
}

Result<std::pair<uint64_t, Error>> decode_error(std::string_view payload) {
  if (payload.size() < sizeof(uint64_t) + sizeof(int32_t)) return corrupt("error");
  const uint64_t request = take<uint64_t>(payload);
  const int32_t code = take<int32_t>(payload);
  if (code < 0 || code >= kErrorCodeCount) return corrupt("error");
  return std::pair<uint64_t, Error>(request,
                                    Error{static_cast<ErrorCode>(code), std::string(payload)});
}

std::string encode_times(const CollectiveTimes& times) {
  return pack(times);
}

Result<CollectiveTimes> decode_times(std::string_view payload) {
  if (payload.size() != sizeof(CollectiveTimes)) return corrupt("list of times");
  return take<CollectiveTimes>(payload);
}

std::string encode_pairs(std::span<const PairTimes> pairs) {
  return pack_span(pairs);
}

Result<std::vector<PairTimes>> decode_pairs(std::string_view payload) {
  return take_all<PairTimes>(payload, "list of pairs");
}

}  // namespace lockstep
