// Errors that the router itself finds, as the OpenAI API tells them. Errors of a backend are handed
// on as they are.
#pragma once

#include <string>
#include <string_view>

#include "net/http_server.h"

namespace lockstep {

// {"error": {"message", "type", "param": null, "code"}} in one line.
std::string error_body(int status, std::string_view message, std::string_view code);
// 429 and 503 carry Retry-After.
HttpResponse error_answer(int status, std::string_view message, std::string_view code);

}  // namespace lockstep
