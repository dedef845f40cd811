#include "cli/client/node_client.h"

#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include <cstdlib>
#include <utility>

#include "access/control_secret.h"
#include "cli/client/node_control.h"
#include "net/http/http_client.h"

namespace lockstep {
namespace {

// Cluster changes are written to the node's disk first.
constexpr std::chrono::milliseconds kAnswerTimeout{15'000};

Error no_node(const NodeFlags& flags, std::string_view reason) {
  const std::string where =
      flags.host == "localhost" ? "of this machine" : fmt::format("of {}", flags.host);
  return {ErrorCode::kPeerLost, fmt::format("no node answers on port {} {} ({}); start one with "
                                            "`lockstep serve MODEL`, or give its port with --port",
                                            flags.port, where, reason)};
}

// Required by a node of another machine that has keys.
constexpr const char* kKeyVariable = "LOCKSTEP_API_KEY";

// The node says what is needed, and this end why it was missing.
std::string sentence_of(const Json& error, const NodeControl& control) {
  const std::string message = refusal_text(error);
  const bool lacks_control = text_in(error, "code") == "control_needed";
  return lacks_control && !control.missing.empty()
             ? fmt::format("{} ({})", message, control.missing)
             : message;
}

Result<Json> call(const NodeFlags& flags, HttpCall call) {
  const NodeControl control = control_of(flags, call);
  if (control.header) call.headers.emplace_back(kControlHeader, *control.header);
  address_call(flags, call);
  call.timeout = kAnswerTimeout;
  const auto answer = call_http(call);
  if (!answer.ok()) return no_node(flags, answer.error().message);
  auto json = parse_json(answer.value().body);
  if (!json.ok() || !json.value().is_object()) {
    return no_node(flags, "the program that answers there is not a lockstep node");
  }
  if (answer.value().status == 200) return std::move(json.value());
  const Json* error = find(json.value(), "error");
  if (error == nullptr || !error->is_object()) {
    return no_node(flags, "the program that answers there is not a lockstep node");
  }
  return Error{error_code_of_status(answer.value().status), sentence_of(*error, control)};
}

}  // namespace

std::string refusal_text(const Json& error) {
  const std::string message = text_in(error, "message");
  return text_in(error, "code") == "invalid_api_key"
             ? fmt::format("{} (this command sends the one in {})", message, kKeyVariable)
             : message;
}

ErrorCode error_code_of_status(int status) {
  if (status == 404) return ErrorCode::kNotFound;
  return status < 500 && status != 429 ? ErrorCode::kInvalidArgument : ErrorCode::kPeerLost;
}

void add_control(const NodeFlags& flags, HttpCall& call) {
  const NodeControl control = control_of(flags, call);
  if (control.header) call.headers.emplace_back(kControlHeader, *control.header);
}

void address_call(const NodeFlags& flags, HttpCall& call) {
  if (const char* key = std::getenv(kKeyVariable)) {
    call.headers.emplace_back("Authorization", "Bearer " + std::string(key));
  }
  call.host = flags.host;
  call.port = static_cast<uint16_t>(flags.port);
}

void add_node_flags(CLI::App& command, NodeFlags& flags) {
  command.add_option("--port", flags.port, "HTTP port of the node (default 8600)")
      ->check(CLI::Range(1, 65535));
  command.add_option("--host", flags.host, "host of the node (default localhost)");
}

Result<Json> ask_node(const NodeFlags& flags, std::string_view path) {
  return call(flags, {.target = std::string(path)});
}

HttpCall post_call(std::string_view path, const JsonObject& body) {
  return {.method = "POST",
          .target = std::string(path),
          .headers = {{"Content-Type", "application/json"}},
          .body = dump_json(body)};
}

Result<Json> tell_node(const NodeFlags& flags, std::string_view path, const JsonObject& body) {
  return call(flags, post_call(path, body));
}

std::string text_in(const Json& object, std::string_view key) {
  const auto value = get_string(object, key);
  return value.ok() ? value.value().value_or("") : "";
}

int64_t number_in(const Json& object, std::string_view key) {
  const auto value = get_int(object, key);
  return value.ok() ? value.value().value_or(0) : 0;
}

double real_in(const Json& object, std::string_view key) {
  const auto value = get_double(object, key);
  return value.ok() ? value.value().value_or(0) : 0;
}

bool flag_in(const Json& object, std::string_view key) {
  const auto value = get_bool(object, key);
  return value.ok() && value.value().value_or(false);
}

std::span<const Json> list_in(const Json& object, std::string_view key) {
  const Json* found = find(object, key);
  if (!found || !found->is_array()) return {};
  return {found->get_array().data(), found->get_array().size()};
}

}  // namespace lockstep
