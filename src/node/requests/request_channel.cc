#include "node/requests/request_channel.h"

#include "cluster/json_fields.h"
#include "cluster/state/desired_state.h"
#include "cluster/state/part_json.h"
#include "json/json.h"
#include "node/requests/stream_route.h"

namespace lockstep {

Result<Channel> request_channel(const RequestPurpose& purpose) {
  Channel channel{kRequestStream, dump_json(JsonObject{{"model", purpose.model},
                                                       {"epoch", epoch_json(purpose.epoch)}})};
  if (channel.purpose.size() > Channel::kPurposeBytesMax) {
    return Error{ErrorCode::kInvalidArgument, "the model's name is too long for a stream"};
  }
  return channel;
}

Result<RequestPurpose> parse_request_purpose(std::string_view purpose) {
  const Json json = TRY(parse_json(purpose));
  RequestPurpose parsed;
  parsed.model = TRY(text_field(json, "model", kModelNameBytesMax));
  parsed.epoch = TRY(epoch_field(json));
  return parsed;
}

}  // namespace lockstep
