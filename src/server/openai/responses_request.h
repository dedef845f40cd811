// The body of POST /v1/responses, checked and converted to the form that all chat APIs share. Pure.
#pragma once

#include <string_view>

#include "json/json.h"
#include "server/chat/chat_plan.h"
#include "server/request/errors.h"

namespace lockstep {

struct ResponsesRequest {
  ChatRequest chat;
  bool wants_summary = false;  // reasoning is sent as its own summary
  // Fields of the request that the answer repeats, each with its value or its default.
  JsonObject echoed;
};

// Fields that OpenAI defines are read or refused by name; others are listed in
// chat.options.ignored, as are tools that cannot run here.
ApiResult<ResponsesRequest> parse_responses_request(std::string_view body);

}  // namespace lockstep
