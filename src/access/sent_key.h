// The API key in a request's headers. Pure functions, any thread.
#pragma once

#include <string_view>

#include "access/api_error.h"
#include "net/http/http_server.h"

namespace lockstep {

// "Authorization: Bearer KEY" from OpenAI's clients, "x-api-key: KEY" from Anthropic's; empty:
// none.
std::string_view key_in(const HttpRequest& request);

// The 401 for a sender without a key, or with an unknown one.
ApiError no_key(bool has_one);

}  // namespace lockstep
