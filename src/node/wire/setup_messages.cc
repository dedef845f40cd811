// Messages about a group: what a worker joins, its reports of that and of loading, and its
// measurements (node/wire/messages.h).
#include "node/wire/message_fields.h"
#include "node/wire/messages.h"

namespace lockstep {
namespace {

JsonArray pairs_json(std::span<const PairTimes> pairs) {
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

Result<RankListening> get_listening(const Json& json) {
  RankListening rank;
  rank.port = TRY(need_int32(json, "port"));
  const auto hosts = TRY(need_array(json, "rdma_hosts"));
  const bool is_port = rank.port > 0 && rank.port <= UINT16_MAX;
  if (!is_port || hosts.size() > kDataAddressesMax) return corrupt_message("port");
  for (const Json& host : hosts) {
    if (!host.is_string() || host.get_string().size() > kHostBytesMax) {
      return corrupt_message("rdma_hosts");
    }
    rank.rdma_hosts.emplace_back(text_of(host.get_string()));
  }
  return rank;
}

}  // namespace

std::string encode_epoch(const EpochSetup& setup) {
  return pack(setup.epoch) + setup.token;
}

Result<EpochSetup> decode_epoch(std::string_view payload) {
  if (payload.size() < sizeof(uint64_t)) return corrupt_message("epoch");
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
                               {"reason", link.reason},
                               {"own_host", link.own_host},
                               {"peer_host", link.peer_host},
                               {"device", link.device},
                               {"network_note", link.network_note}});
  }
  return dump_json(JsonObject{{"epoch", as_signed(report.epoch)},
                              {"late_calls", as_signed(report.late_calls)},
                              {"late_frames", as_signed(report.late_frames)},
                              {"links", std::move(links)},
                              {"pairs", pairs_json(report.pairs)}});
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
    use.own_host = TRY(need_string(link, "own_host"));
    use.peer_host = TRY(need_string(link, "peer_host"));
    use.device = TRY(need_string(link, "device"));
    use.network_note = TRY(need_string(link, "network_note"));
  }
  for (const Json& pair : TRY(need_array(json, "pairs"))) {
    report.pairs.push_back(TRY(get_pair(pair)));
  }
  return report;
}

std::string encode_listening(std::span<const RankListening> ranks) {
  JsonArray array;
  for (const RankListening& rank : ranks) {
    array.push_back(JsonObject{{"port", rank.port}, {"rdma_hosts", json_array(rank.rdma_hosts)}});
  }
  return dump_json(array);
}

Result<std::vector<RankListening>> decode_listening(std::string_view payload) {
  const Json json = TRY(parse_json(payload));
  if (!json.is_array()) return corrupt_message("list of ports");
  std::vector<RankListening> ranks;
  for (const Json& one : json.get_array()) ranks.push_back(TRY(get_listening(one)));
  return ranks;
}

std::string encode_report(const LoadReport& report) {
  JsonObject object;
  object["weight_bytes"] = as_signed(report.weight_bytes);
  object["read_bytes"] = as_signed(report.read_bytes);
  object["token_bytes"] = as_signed(report.token_bytes);
  object["state_bytes"] = as_signed(report.state_bytes);
  object["context"] = report.context;
  object["vocab_size"] = report.vocab_size;
  object["identity"] = report.identity;
  object["first_layer"] = report.first_layer;
  object["last_layer"] = report.last_layer;
  object["device"] = report.device;
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
  tensor.error.largest = TRY(need_float(json, "largest"));
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
  report.identity = TRY(need_string(json, "identity"));
  report.first_layer = TRY(need_int32(json, "first_layer"));
  report.last_layer = TRY(need_int32(json, "last_layer"));
  // Workers of earlier programs do not say it.
  if (find(json, "device") != nullptr) report.device = TRY(need_string(json, "device"));
  for (const Json& tensor : TRY(need_array(json, "quantised"))) {
    report.quantised.add(TRY(decode_tensor_error(tensor)));
  }
  return report;
}

std::string encode_times(const CollectiveTimes& times) {
  return pack(times);
}

Result<CollectiveTimes> decode_times(std::string_view payload) {
  if (payload.size() != sizeof(CollectiveTimes)) return corrupt_message("list of times");
  return take<CollectiveTimes>(payload);
}

std::string encode_pairs(std::span<const PairTimes> pairs) {
  return pack_span(pairs);
}

Result<std::vector<PairTimes>> decode_pairs(std::string_view payload) {
  return take_all<PairTimes>(payload, "list of pairs");
}

}  // namespace lockstep
