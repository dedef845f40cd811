#include "server/browser/demo_routes.h"

#include <optional>

#include "base/log.h"
#include "json/json.h"
#include "server/generation/api_context.h"
#include "server/request/errors.h"
#include "server/request/fresh_json.h"
#include "server/request/request_fields.h"

namespace lockstep {
namespace {

constexpr int64_t kRankMax = 1 << 16;

ApiResult<std::optional<int>> rank_in(const HttpRequest& request) {
  if (request.body.empty()) return std::optional<int>();
  const Json json = TRY(parse_body(request.body));
  RequestFields fields(json.get_object());
  const auto rank = TRY(fields.integer("rank", 0, kRankMax));
  TRY(fields.refuse_ignored());
  return rank ? std::optional<int>(static_cast<int>(*rank)) : std::optional<int>();
}

ApiResult<JsonObject> kill(const ApiContext& context, const HttpRequest& request) {
  DemoPlug* const plug = context.demo();
  if (plug == nullptr) {
    return ApiError{404,
                    "workers of this node cannot be killed over HTTP: only `lockstep serve --alone "
                    "--demo` allows it",
                    "", "no_demo"};
  }
  TRY(context.access().check_this_machine(request));
  const std::optional<int> rank = TRY(rank_in(request));
  const RankStatus killed = TRY(plug->pull(rank, DemoPlug::Clock::now()));
  log_info("demo: rank {} (process {}) is killed, as a request asked", killed.rank, killed.pid);
  return JsonObject{{"rank", killed.rank}, {"pid", killed.pid}};
}

}  // namespace

void serve_demo_kill(ApiContext& context, const HttpRequest& request, const HttpReply& reply) {
  send_fresh(reply, kill(context, request));
}

}  // namespace lockstep
