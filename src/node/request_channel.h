// The stream by which a node's clients reach the group of a placement on another node: which
// placement is meant. Pure functions; what makes no sense is kCorrupt.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "cluster/greeting.h"
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
