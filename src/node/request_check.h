// What is asked of a request before a ModelService accepts it, and how the refusal of one is to be
// read by whoever hands requests on. Pure functions.
#pragma once

#include <cstddef>

#include "base/result.h"
#include "engine/engine.h"
#include "node/model_service.h"

namespace lockstep {

struct RequestLimits {
  int context = 0;  // positions of a sequence; 0: not known
  int running = 0;  // requests that have not ended
  int running_max = 0;
};

// kInvalidArgument: it makes no sense; kExhausted: it is too long, or too many run already.
Status check_request(const GenerateRequest& request, const RequestLimits& limits);

enum class Refusal {
  kFinal,  // the request itself is at fault
  kBusy,   // too many run, it may be tried again
  kLost,   // the model is gone from there
};
// Of the error with which `service` refused a prompt of `prompt_size` tokens.
Refusal judge_refusal(const ModelService& service, size_t prompt_size, const Error& error);

}  // namespace lockstep
