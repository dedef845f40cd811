#include "server/inspection/hub_route.h"

#include <string>
#include <utility>
#include <vector>

#include "hub/http/hub_search.h"
#include "json/json.h"
#include "server/generation/api_context.h"
#include "server/operations/disk_routes.h"
#include "server/request/fresh_json.h"
#include "server/request/query.h"

namespace lockstep {
namespace {

constexpr int kSearchModelsUsual = 20;

ApiError search_error(const Error& error) {
  ApiError api = to_api_error(error);
  switch (error.code) {
    case ErrorCode::kInvalidArgument:
      api.param = "q";
      break;
    case ErrorCode::kUnsupported:
      api = {409, error.message, "", "hub_offline"};
      break;
    case ErrorCode::kCorrupt:
      api = {502, error.message, "", "hub_invalid"};
      break;
    case ErrorCode::kPeerLost:
      api.code = "hub_unreachable";
      break;
    case ErrorCode::kExhausted:
      api.code = "hub_busy";
      break;
    default:
      break;
  }
  return api;
}

JsonObject found_json(const FoundModel& model) {
  JsonObject json{{"id", model.id}, {"gated", model.is_gated}};
  if (model.downloads) json["downloads"] = *model.downloads;
  if (model.likes) json["likes"] = *model.likes;
  if (!model.updated.empty()) json["updated"] = model.updated;
  return json;
}

ApiResult<JsonObject> search(ApiContext& context, const HttpRequest& request) {
  ModelDesk* const desk = TRY(desk_for(context));
  const auto query = TRY(parse_query(request.query));
  TRY(check_names(query, {"q", "limit"}));
  const auto words = text_in(query, "q");
  if (!words) return missing_field("q");
  const auto limit = TRY(number_in(query, "limit", 1, kSearchModelsMax));
  const auto found = desk->search(*words, static_cast<int>(limit.value_or(kSearchModelsUsual)));
  if (!found.ok()) return search_error(found.error());
  JsonArray models;
  for (const FoundModel& model : found.value()) models.push_back(found_json(model));
  return JsonObject{{"models", std::move(models)}};
}

}  // namespace

void serve_hub_search(ApiContext& context, const HttpRequest& request, const HttpReply& reply) {
  send_fresh(reply, search(context, request));
}

}  // namespace lockstep
