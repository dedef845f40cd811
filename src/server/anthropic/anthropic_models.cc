#include "server/anthropic/anthropic_models.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "json/json.h"
#include "server/generation/api_context.h"
#include "server/openai/openai_models.h"
#include "server/request/query.h"
#include "server/request/request_id.h"

namespace lockstep {
namespace {

constexpr size_t kLimitMax = 1000;

// The release time in Anthropic's own API if it is unknown.
constexpr const char* kUnknownTime = "1970-01-01T00:00:00Z";

JsonObject anthropic_model_object(const ModelService& model) {
  const ModelStatus status = model.status();
  const Json context = status.context > 0 ? Json(status.context) : Json(nullptr);
  return {{"type", "model"},
          {"id", status.name},
          {"display_name", status.name},
          {"created_at", kUnknownTime},
          {"max_input_tokens", context},
          {"max_tokens", context}};
}

// Indices of models, `last` excluded.
struct ModelRange {
  size_t first = 0;
  size_t last = 0;
  bool has_more = false;  // in the direction of the cursor
};

ApiResult<ModelRange> range_of(const ModelPage& page, const ModelServices& models) {
  const std::string& cursor = page.after_id.empty() ? page.before_id : page.after_id;
  size_t place = 0;
  if (!cursor.empty()) {
    const auto found = std::find_if(models.begin(), models.end(), [&](const auto& model) {
      return model->status().name == cursor;
    });
    if (found == models.end()) {
      const char* const name = page.after_id.empty() ? "before_id" : "after_id";
      return bad_field(name, fmt::format("{} is not the id of a model that is loaded: ask for the "
                                         "list from its beginning",
                                         name));
    }
    place = static_cast<size_t>(found - models.begin());
  }
  if (!page.before_id.empty()) {
    const size_t first = place - std::min(place, page.limit);
    return ModelRange{first, place, first > 0};
  }
  const size_t first = page.after_id.empty() ? 0 : place + 1;
  const size_t last = first + std::min(models.size() - first, page.limit);
  return ModelRange{first, last, last < models.size()};
}

ApiResult<std::string> list_text(const ModelServices& models, std::string_view query) {
  const ModelPage page = TRY(parse_model_page(query));
  const ModelRange range = TRY(range_of(page, models));
  JsonArray data;
  for (size_t i = range.first; i < range.last; ++i)
    data.push_back(anthropic_model_object(*models[i]));
  JsonObject list{{"has_more", range.has_more}, {"first_id", nullptr}, {"last_id", nullptr}};
  if (!data.empty()) {
    list["first_id"] = data.front().as_object()["id"];
    list["last_id"] = data.back().as_object()["id"];
  }
  list["data"] = std::move(data);
  return dump_json(list);
}

HttpResponse refusal(const ApiError& error, const HttpRequest& request) {
  return error_response(error, ErrorStyle::kAnthropic, request_id(request));
}

}  // namespace

ApiResult<ModelPage> parse_model_page(std::string_view query) {
  const auto parameters = TRY(parse_query(query));
  ModelPage page;
  page.limit =
      static_cast<size_t>(TRY(number_in(parameters, "limit", 1, kLimitMax)).value_or(page.limit));
  page.after_id = text_in(parameters, "after_id").value_or("");
  page.before_id = text_in(parameters, "before_id").value_or("");
  if (!page.after_id.empty() && !page.before_id.empty()) {
    return bad_field("before_id", "only one of after_id and before_id can be given");
  }
  return page;
}

HttpResponse list_anthropic_models(const ApiContext& context, const HttpRequest& request) {
  auto text = list_text(context.models(), request.query);
  if (!text.ok()) return refusal(text.error(), request);
  return {200, "application/json", std::move(text.value()), {}};
}

HttpResponse show_anthropic_model(const ApiContext& context, const HttpRequest& request,
                                  std::string_view id) {
  const auto found = find_listed_model(context, id);
  if (!found.ok()) return refusal(found.error(), request);
  return {200, "application/json", dump_json(anthropic_model_object(*found.value())), {}};
}

}  // namespace lockstep
