#include "server/openai/openai_models.h"

#include <utility>

#include "json/json.h"
#include "server/generation/api_context.h"

namespace lockstep {
namespace {

JsonObject openai_model_object(const ApiContext& context, const ModelService& model) {
  return {{"id", model.status().name},
          {"object", "model"},
          {"created", context.created()},
          {"owned_by", "lockstep"}};
}

}  // namespace

// Only an alias needs find_model(), which counts as a use.
ApiResult<std::shared_ptr<ModelService>> find_listed_model(const ApiContext& context,
                                                           std::string_view id) {
  std::shared_ptr<ModelService> model = model_named(context.models(), id);
  if (model != nullptr) return model;
  return context.find_model(id);
}

HttpResponse list_models(const ApiContext& context) {
  JsonArray models;
  for (const auto& model : context.models()) models.push_back(openai_model_object(context, *model));
  return {200,
          "application/json",
          dump_json(JsonObject{{"object", "list"}, {"data", std::move(models)}}),
          {}};
}

HttpResponse show_model(const ApiContext& context, std::string_view id) {
  const auto found = find_listed_model(context, id);
  if (!found.ok()) return error_response(found.error());
  return {200, "application/json", dump_json(openai_model_object(context, *found.value())), {}};
}

}  // namespace lockstep
