// The stream over which the node that leads a group has one of its ranks run on another node: what
// is requested, and the first frame back. After that both ends relay the bytes of the worker's
// control channel (net/frames/fd_relay.h). Pure functions; invalid input is kCorrupt.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "cluster/discovery/greeting.h"
#include "cluster/part.h"

namespace lockstep {

inline constexpr const char* kWorkerChannel = "worker";

struct WorkerPurpose {
  std::string model;
  PlacementEpoch epoch;
  int rank = 0;
};

// kInvalidArgument: longer than a channel's purpose may be.
Result<Channel> worker_channel(const WorkerPurpose& purpose);
Result<WorkerPurpose> parse_worker_purpose(std::string_view purpose);

// The first frame: the process has started, or why not.
std::string encode_worker_started(int64_t pid);
std::string encode_worker_refusal(const Error& error);
// The process id. kPeerLost: refused, and worth asking again; kInvalidArgument: refused for good.
Result<int64_t> decode_worker_answer(std::string_view frame);

}  // namespace lockstep
