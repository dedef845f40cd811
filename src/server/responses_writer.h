// The answer of POST /v1/responses: a response whose output comes in items: reasoning, a message,
// calls of functions.
#pragma once

#include <memory>
#include <string>

#include "json/json.h"
#include "server/chat_writer.h"

namespace lockstep {

struct ResponseSettings {
  std::string model;
  JsonObject echoed;           // of the request
  bool wants_summary = false;  // reasoning is told as its summary
};

std::unique_ptr<ChatWriter> make_response_writer(ResponseSettings settings);

}  // namespace lockstep
