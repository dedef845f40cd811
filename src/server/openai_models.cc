#include "server/openai_models.h"

#include <utility>

#include "json/json.h"
#include "server/api_context.h"

namespace lockstep {
namespace {

JsonObject model_object(const ApiContext& context, const ModelService& model) {
  return {{"id", model.status().name},
          {"object", "model"},
          {"created", context.created()},
          {"owned_by", "lockstep"}};
}

}  // namespace

HttpResponse list_models(const ApiContext& context) {
  JsonArray models;
  for (const auto& model : context.models()) models.push_back(model_object(context, *model));
  return {200,
          "application/json",
          dump_json(JsonObject{{"object", "list"}, {"data", std::move(models)}}),
          {}};
}

HttpResponse show_model(const ApiContext& context, std::string_view id) {
  const auto model = context.find_model(id);
  if (!model.ok()) return error_response(model.error());
  return {200, "application/json", dump_json(model_object(context, *model.value())), {}};
}

}  // namespace lockstep
