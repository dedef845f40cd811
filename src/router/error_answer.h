// The router's own errors, in the form of the OpenAI API. Errors of a backend are forwarded
// unchanged.
#pragma once

#include <string>
#include <string_view>

#include "net/http/http_server.h"

namespace lockstep {

// {"error": {"message", "type", "param": null, "code"}} in one line.
std::string error_body(int status, std::string_view message, std::string_view code);
// 429 and 503 carry Retry-After.
HttpResponse error_answer(int status, std::string_view message, std::string_view code);

}  // namespace lockstep
