#include "router/error_answer.h"

#include "json/json.h"

namespace lockstep {
namespace {

constexpr const char* kRetryAfterSeconds = "1";

const char* error_type(int status) {
  if (status == 429) return "rate_limit_error";
  return status >= 500 ? "server_error" : "invalid_request_error";
}

}  // namespace

std::string error_body(int status, std::string_view message, std::string_view code) {
  return dump_json(JsonObject{{"error", JsonObject{{"message", message},
                                                   {"type", error_type(status)},
                                                   {"param", nullptr},
                                                   {"code", code}}}});
}

HttpResponse error_answer(int status, std::string_view message, std::string_view code) {
  HttpResponse response{status, "application/json", error_body(status, message, code), {}};
  if (status == 429 || status == 503) {
    response.headers.emplace_back("Retry-After", kRetryAfterSeconds);
  }
  return response;
}

}  // namespace lockstep
