// The body of POST /v1/responses, checked and put into the form that all chat APIs share. Pure.
#pragma once

#include <string_view>

#include "json/json.h"
#include "server/chat_plan.h"
#include "server/errors.h"

namespace lockstep {

struct ResponsesRequest {
  ChatRequest chat;
  bool wants_summary = false;  // reasoning is told as its own summary
  // What the answer repeats of the request, each field with its value or its default.
  JsonObject echoed;
};

// Fields that OpenAI defines are understood or refused by name; others are in chat.options.ignored,
// and so are tools that nobody here can run.
ApiResult<ResponsesRequest> parse_responses_request(std::string_view body);

}  // namespace lockstep
