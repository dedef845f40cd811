#include "node/worker/worker_stream.h"

#include <fmt/format.h>

#include "cluster/json_fields.h"
#include "cluster/sentences.h"
#include "cluster/state/desired_state.h"
#include "cluster/state/part_json.h"
#include "json/json.h"

namespace lockstep {

Result<Channel> worker_channel(const WorkerPurpose& purpose) {
  Channel channel{
      .kind = kWorkerChannel,
      .purpose = dump_json(JsonObject{
          {"model", purpose.model}, {"epoch", epoch_json(purpose.epoch)}, {"rank", purpose.rank}})};
  if (channel.purpose.size() > Channel::kPurposeBytesMax) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("the name of model {} is too long", purpose.model)};
  }
  return channel;
}

Result<WorkerPurpose> parse_worker_purpose(std::string_view purpose) {
  const Json json = TRY(parse_json(purpose));
  WorkerPurpose parsed;
  parsed.model = TRY(text_field(json, "model", kModelNameBytesMax));
  parsed.epoch = TRY(epoch_field(json));
  parsed.rank = static_cast<int>(TRY(number_field(json, "rank", kPlacementRanksMax - 1)));
  return parsed;
}

std::string encode_worker_started(int64_t pid) {
  return dump_json(JsonObject{{"pid", pid}});
}

std::string encode_worker_refusal(const Error& error) {
  return dump_json(JsonObject{{"refused", short_sentence(error.message)},
                              {"is_final", error.code != ErrorCode::kPeerLost}});
}

Result<int64_t> decode_worker_answer(std::string_view frame) {
  const Json json = TRY(parse_json(frame));
  if (find(json, "refused") == nullptr) return number_field(json, "pid");
  std::string reason = TRY(text_field(json, "refused", kReasonBytesMax));
  const bool is_final = TRY(bool_field(json, "is_final"));
  return Error{is_final ? ErrorCode::kInvalidArgument : ErrorCode::kPeerLost, std::move(reason)};
}

}  // namespace lockstep
