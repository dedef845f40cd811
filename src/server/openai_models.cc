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
  // Looking at a model is no use of it; only an alias cannot be told from here.
  std::shared_ptr<ModelService> model = model_named(context.models(), id);
  if (model == nullptr) {
    auto found = context.find_model(id);
    if (!found.ok()) return error_response(found.error());
    model = std::move(found.value());
  }
  return {200, "application/json", dump_json(model_object(context, *model)), {}};
}

}  // namespace lockstep
