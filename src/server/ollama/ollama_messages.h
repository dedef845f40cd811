// Converts messages in Ollama's form to OpenAI's, which parse_messages() checks and templates read:
// calls get a type and an id, results the id of the call that they answer. Pure.
#pragma once

#include "json/json.h"
#include "server/request/errors.h"

namespace lockstep {

// An array, perhaps an empty one. `value` may be null: the field is missing.
ApiResult<Json> openai_messages(const Json* value);

// 400 if a message or a request has images.
ApiResult<Ok> refuse_images(const Json* images, const std::string& param);

}  // namespace lockstep
