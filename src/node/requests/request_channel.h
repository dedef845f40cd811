// Names the placement on a stream between a node's clients and a group on another node. Pure
// functions; invalid input is kCorrupt.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "cluster/discovery/greeting.h"
#include "cluster/part.h"

namespace lockstep {

struct RequestPurpose {
  std::string model;
  PlacementEpoch epoch;
};

// kInvalidArgument: longer than a channel's purpose may be.
Result<Channel> request_channel(const RequestPurpose& purpose);
Result<RequestPurpose> parse_request_purpose(std::string_view purpose);

}  // namespace lockstep
