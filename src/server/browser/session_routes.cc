#include "server/browser/session_routes.h"

#include <chrono>
#include <string>
#include <utility>

#include "json/json.h"
#include "server/generation/api_context.h"
#include "server/request/errors.h"
#include "server/request/fresh_json.h"

namespace lockstep {
namespace {

ApiResult<JsonObject> session(const ApiContext& context, const HttpRequest& request) {
  const auto facts = TRY(context.access().session_facts(request));
  return JsonObject{{"control", facts.has_control},
                    {"key", facts.has_key},
                    {"keys_needed", facts.has_keys},
                    {"demo", context.demo() != nullptr}};
}

void send_with_cookie(const HttpReply& reply, const JsonObject& said, std::string cookie) {
  HttpResponse response = fresh_json(dump_json(said));
  response.headers.emplace_back("Set-Cookie", std::move(cookie));
  reply.send(std::move(response));
}

}  // namespace

void serve_session(ApiContext& context, const HttpRequest& request, const HttpReply& reply) {
  send_fresh(reply, session(context, request));
}

void serve_session_start(ApiContext& context, const HttpRequest& request, const HttpReply& reply) {
  auto cookie = context.access().open_key_session(request);
  if (!cookie.ok()) return reply.send(error_response(cookie.error()));
  send_with_cookie(
      reply,
      {{"key", true}, {"expires_s", std::chrono::seconds(KeySessions::kSessionLife).count()}},
      std::move(cookie.value()));
}

void serve_session_end(ApiContext& context, const HttpRequest& request, const HttpReply& reply) {
  auto ended = context.access().close_key_session(request);
  if (!ended.ok()) return reply.send(error_response(ended.error()));
  send_with_cookie(reply, {{"ended", ended.value().has_ended}},
                   std::move(ended.value().set_cookie));
}

}  // namespace lockstep
