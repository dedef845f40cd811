#include "server/operations/control_routes.h"

#include <string>
#include <string_view>

#include "json/json.h"
#include "server/generation/api_context.h"
#include "server/request/errors.h"
#include "server/request/fresh_json.h"

namespace lockstep {
namespace {

constexpr std::string_view kNonceField = "nonce=";

ApiResult<JsonObject> proof(const ApiContext& context, const HttpRequest& request) {
  std::string_view nonce = request.query;
  if (nonce.starts_with(kNonceField)) nonce.remove_prefix(kNonceField.size());
  const auto offer = TRY(context.access().offer_control(request, nonce));
  return JsonObject{{"nonce", offer.nonce}, {"proof", offer.proof}};
}

ApiResult<JsonObject> page_code(const ApiContext& context) {
  const std::string code = TRY(context.access().make_page_code());
  return JsonObject{{"path", std::string(kPagePrefix) + code},
                    {"expires_s", std::chrono::seconds(PageSessions::kCodeLife).count()}};
}

}  // namespace

void serve_control_proof(ApiContext& context, const HttpRequest& request, const HttpReply& reply) {
  send_fresh(reply, proof(context, request));
}

void serve_page_code(ApiContext& context, const HttpRequest&, const HttpReply& reply) {
  send_fresh(reply, page_code(context));
}

void serve_page_entry(ApiContext& context, const HttpRequest& request, const HttpReply& reply) {
  const std::string_view code = std::string_view(request.path).substr(kPagePrefix.size());
  auto cookie = context.access().open_page(request, code);
  if (!cookie.ok()) return reply.send(error_response(cookie.error()));
  // The next page must not learn this address from the Referer header.
  reply.send({303,
              "text/plain; charset=utf-8",
              "The page is at /.",
              {{"Location", "/"},
               {"Set-Cookie", cookie.value()},
               {"Cache-Control", "no-store"},
               {"Referrer-Policy", "no-referrer"}}});
}

}  // namespace lockstep
