#include "server/request/errors.h"

#include "base/threads/work.h"
#include "json/json.h"

namespace lockstep {
namespace {

const char* error_type(int status) {
  if (status == 401) return "authentication_error";
  if (status == 429) return "rate_limit_error";
  return status >= 500 ? "server_error" : "invalid_request_error";
}

constexpr int kAnthropicOverloaded = 529;

const char* anthropic_error_type(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 413:
      return "request_too_large";
    case 429:
      return "rate_limit_error";
    case 503:
      return "overloaded_error";
    case 504:
      return "timeout_error";
    default:
      return status >= 500 ? "api_error" : "invalid_request_error";
  }
}

std::string anthropic_error_json(const ApiError& error, std::string_view request_id) {
  JsonObject body{{"type", "error"},
                  {"error", JsonObject{{"type", anthropic_error_type(error.status)},
                                       {"message", error.message}}}};
  if (!request_id.empty()) body["request_id"] = request_id;
  return dump_json(body);
}

Json text_or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

}  // namespace

ApiError to_api_error(const Error& error) {
  switch (error.code) {
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kCorrupt:
      return {400, error.message, "", "invalid_value"};
    case ErrorCode::kNotFound:
      return {404, error.message, "", "not_found"};
    case ErrorCode::kUnsupported:
      return {400, error.message, "", "unsupported"};
    case ErrorCode::kExhausted:
      return {429, error.message, "", "queue_full"};
    case ErrorCode::kTimeout:
      return {504, error.message, "", "timeout"};
    case ErrorCode::kCancelled:
      return {503, error.message, "", "cancelled"};
    case ErrorCode::kPeerLost:
      return {503, error.message, "", "model_not_ready"};
    case ErrorCode::kInternal:
      return {500, error.message, "", "internal_error"};
  }
  return {500, error.message, "", "internal_error"};
}

ApiResult<Ok> check_work() {
  const Status status = Work::check();
  if (status.ok()) return Ok{};
  if (status.error().code != ErrorCode::kExhausted) return to_api_error(status.error());
  return ApiError{413, status.error().message, "", "too_much_work"};
}

ApiError bad_field(std::string param, std::string message) {
  return {400, std::move(message), std::move(param), "invalid_value"};
}

ApiError missing_field(std::string name) {
  return {400, "\"" + name + "\" is required", std::move(name), "missing_required_parameter"};
}

ApiError unsupported_field(std::string param, std::string message) {
  return {400, std::move(message), std::move(param), "unsupported_parameter"};
}

ErrorStyle error_style_of(std::string_view path) {
  if (path.starts_with("/api/")) return ErrorStyle::kOllama;
  if (path.starts_with("/v1/")) path.remove_prefix(3);
  const bool is_messages = path == "/messages" || path.starts_with("/messages/");
  return is_messages ? ErrorStyle::kAnthropic : ErrorStyle::kOpenAi;
}

ErrorStyle error_style_of(const HttpRequest& request) {
  const ErrorStyle style = error_style_of(request.path);
  const bool is_anthropic =
      style == ErrorStyle::kOpenAi && !request.header("anthropic-version").empty();
  return is_anthropic ? ErrorStyle::kAnthropic : style;
}

std::string error_json(const ApiError& error, ErrorStyle style, std::string_view request_id) {
  if (style == ErrorStyle::kAnthropic) return anthropic_error_json(error, request_id);
  if (style == ErrorStyle::kOllama) return dump_json(JsonObject{{"error", error.message}});
  return dump_json(JsonObject{{"error", JsonObject{{"message", error.message},
                                                   {"type", error_type(error.status)},
                                                   {"param", text_or_null(error.param)},
                                                   {"code", text_or_null(error.code)}}}});
}

HttpResponse error_response(const ApiError& error, ErrorStyle style, std::string_view request_id) {
  HttpResponse response{error.status, "application/json", error_json(error, style, request_id), {}};
  if (style == ErrorStyle::kAnthropic && error.status == 503) {
    response.status = kAnthropicOverloaded;
  }
  if (error.status == 429 || error.status == 503) {
    response.headers.emplace_back("Retry-After", std::to_string(error.retry_after_s));
  }
  if (error.status == 401) response.headers.emplace_back("WWW-Authenticate", "Bearer");
  return response;
}

}  // namespace lockstep
