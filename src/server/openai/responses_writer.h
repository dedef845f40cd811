// The answer to POST /v1/responses: a response whose output is a list of items: reasoning, a
// message, function calls.
#pragma once

#include <memory>
#include <string>

#include "json/json.h"
#include "server/chat/chat_writer.h"

namespace lockstep {

struct ResponseSettings {
  std::string model;
  JsonObject echoed;           // of the request
  bool wants_summary = false;  // reasoning is sent as its summary
};

std::unique_ptr<ChatWriter> make_response_writer(ResponseSettings settings);

}  // namespace lockstep
