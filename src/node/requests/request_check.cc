#include "node/requests/request_check.h"

#include <fmt/format.h>

#include <cmath>

namespace lockstep {
namespace {

bool are_numbers(const SamplingOptions& sampling) {
  for (const float value :
       {sampling.temperature, sampling.top_p, sampling.min_p, sampling.typical_p,
        sampling.repetition_penalty, sampling.presence_penalty, sampling.frequency_penalty,
        sampling.dry_multiplier, sampling.dry_base}) {
    if (!std::isfinite(value)) return false;
  }
  return sampling.repetition_penalty > 0 && sampling.top_k >= 0;
}

}  // namespace

Status check_request(const GenerateRequest& request, const RequestLimits& limits) {
  if (request.prompt.empty()) {
    return Error{ErrorCode::kInvalidArgument, "the prompt is empty"};
  }
  if (request.max_tokens < 0 || request.chunk < 0 || !are_numbers(request.sampling)) {
    return Error{ErrorCode::kInvalidArgument,
                 "max_tokens and the sampling options must be numbers in their ranges"};
  }
  if (limits.context > 0 && request.prompt.size() > static_cast<size_t>(limits.context)) {
    return Error{ErrorCode::kExhausted,
                 fmt::format("the prompt has {} tokens but the context holds {}",
                             request.prompt.size(), limits.context)};
  }
  if (limits.running >= limits.running_max) {
    return Error{
        ErrorCode::kExhausted,
        fmt::format("{} requests are already running or waiting, try again later", limits.running)};
  }
  return Ok{};
}

Refusal judge_refusal(const ModelService& service, size_t prompt_size, const Error& error) {
  switch (error.code) {
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kUnsupported:
      return Refusal::kFinal;
    case ErrorCode::kExhausted: {
      const int context = service.status().context;
      const bool is_too_long = context > 0 && prompt_size > static_cast<size_t>(context);
      return is_too_long ? Refusal::kFinal : Refusal::kBusy;
    }
    default:
      return Refusal::kLost;
  }
}

}  // namespace lockstep
