// Checks a request before a ModelService accepts it, and classifies a refusal for callers that
// forward requests. Pure functions.
#pragma once

#include <cstddef>

#include "base/result.h"
#include "engine/engine.h"
#include "node/models/model_service.h"

namespace lockstep {

struct RequestLimits {
  int context = 0;  // positions of a sequence; 0: not known
  int running = 0;  // requests that have not ended
  int running_max = 0;
};

// kInvalidArgument: it is invalid; kExhausted: it is too long, or too many run already.
Status check_request(const GenerateRequest& request, const RequestLimits& limits);

enum class Refusal {
  kFinal,  // the request itself is at fault
  kBusy,   // too many run, retry later
  kLost,   // the model is no longer there
};
// For the error with which `service` refused a prompt of `prompt_size` tokens.
Refusal judge_refusal(const ModelService& service, size_t prompt_size, const Error& error);

}  // namespace lockstep
