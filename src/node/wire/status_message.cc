#include "node/wire/status_message.h"

#include <algorithm>

#include "base/utf8.h"
#include "cluster/json_fields.h"
#include "json/json.h"

namespace lockstep {
namespace {

constexpr int64_t kIntMax = INT32_MAX;
constexpr size_t kLinkBytesMax = 256;
constexpr size_t kNodeNameBytesMax = 256;
constexpr size_t kIdentityBytesMax = 256;
constexpr size_t kDeviceBytesMax = 1024;
constexpr size_t kRanksMax = 64;
constexpr size_t kReplacementBytes = 3;  // for an invalid byte

// Messages may contain file names, which need not be UTF-8; JSON must be.
std::string json_text(std::string_view text, size_t bytes_max) {
  text = text.substr(0, bytes_max / kReplacementBytes);
  text.remove_suffix(incomplete_utf8_tail(text));
  return replace_invalid_utf8(text);
}

int64_t as_number(uint64_t value) {
  return static_cast<int64_t>(std::min<uint64_t>(value, INT64_MAX));
}

Result<RankStatus> decode_rank(const Json& json) {
  RankStatus rank;
  rank.rank = static_cast<int>(TRY(number_field(json, "rank", kRanksMax - 1)));
  rank.pid = TRY(number_field(json, "pid"));
  rank.node = TRY(text_field(json, "node", kNodeNameBytesMax));
  rank.weight_bytes = static_cast<uint64_t>(TRY(number_field(json, "weight_bytes")));
  rank.read_bytes = static_cast<uint64_t>(TRY(number_field(json, "read_bytes")));
  rank.token_bytes = static_cast<uint64_t>(TRY(number_field(json, "token_bytes")));
  rank.state_bytes = static_cast<uint64_t>(TRY(number_field(json, "state_bytes")));
  const auto begin = static_cast<int>(TRY(number_field(json, "layer_begin", kIntMax)));
  const auto end = static_cast<int>(TRY(number_field(json, "layer_end", kIntMax)));
  if (end > begin) {  // else they are not known
    rank.first_layer = begin;
    rank.last_layer = end - 1;
  }
  // Earlier programs do not say it.
  if (find(json, "device") != nullptr) {
    rank.device = TRY(text_field(json, "device", kDeviceBytesMax));
  }
  return rank;
}

}  // namespace

std::string encode_status(const ModelStatus& status) {
  JsonArray ranks;
  for (const RankStatus& rank : status.ranks) {
    ranks.push_back(JsonObject{{"rank", rank.rank},
                               {"pid", rank.pid},
                               {"node", json_text(rank.node, kNodeNameBytesMax)},
                               {"weight_bytes", as_number(rank.weight_bytes)},
                               {"read_bytes", as_number(rank.read_bytes)},
                               {"token_bytes", as_number(rank.token_bytes)},
                               {"state_bytes", as_number(rank.state_bytes)},
                               {"layer_begin", std::max(0, rank.first_layer)},
                               {"layer_end", rank.last_layer + 1},
                               {"device", json_text(rank.device, kDeviceBytesMax)}});
  }
  return dump_json(JsonObject{{"state", static_cast<int>(status.state)},
                              {"last_error", json_text(status.last_error, kStatusErrorBytesMax)},
                              {"restarts", status.restarts},
                              {"epoch", as_number(status.epoch)},
                              {"late_calls", as_number(status.late_calls)},
                              {"late_frames", as_number(status.late_frames)},
                              {"link", json_text(status.link, kLinkBytesMax)},
                              {"stages", status.stages},
                              {"threads", status.threads},
                              {"context", status.context},
                              {"running", status.running},
                              {"vocab_size", status.vocab_size},
                              {"identity", json_text(status.identity, kIdentityBytesMax)},
                              {"pooling", static_cast<int>(status.pooling)},
                              {"ranks", std::move(ranks)}});
}

Result<ModelStatus> decode_status(std::string_view text) {
  const Json json = TRY(parse_json(text));
  ModelStatus status;
  const int64_t states = static_cast<int64_t>(ModelStatus::State::kStopped);
  status.state = static_cast<ModelStatus::State>(TRY(number_field(json, "state", states)));
  status.last_error = TRY(text_field(json, "last_error", kStatusErrorBytesMax));
  status.restarts = static_cast<int>(TRY(number_field(json, "restarts", kIntMax)));
  status.epoch = static_cast<uint64_t>(TRY(number_field(json, "epoch")));
  status.late_calls = static_cast<uint64_t>(TRY(number_field(json, "late_calls")));
  status.late_frames = static_cast<uint64_t>(TRY(number_field(json, "late_frames")));
  status.link = TRY(text_field(json, "link", kLinkBytesMax));
  status.stages = static_cast<int>(TRY(number_field(json, "stages", kRanksMax)));
  status.threads = static_cast<int>(TRY(number_field(json, "threads", kIntMax)));
  status.context = static_cast<int>(TRY(number_field(json, "context", kIntMax)));
  status.running = static_cast<int>(TRY(number_field(json, "running", kIntMax)));
  status.vocab_size = static_cast<int>(TRY(number_field(json, "vocab_size", kIntMax)));
  status.identity = TRY(text_field(json, "identity", kIdentityBytesMax));
  const int64_t poolings = static_cast<int64_t>(Pooling::kMean);
  status.pooling = static_cast<Pooling>(TRY(number_field(json, "pooling", poolings)));
  for (const Json& rank : *TRY(list_field(json, "ranks", kRanksMax))) {
    status.ranks.push_back(TRY(decode_rank(rank)));
  }
  return status;
}

}  // namespace lockstep
