// GET /v1/models and /v1/models/{id} in the shape of Anthropic's API, for requests with the header
// anthropic-version, which all of its clients send.
#pragma once

#include <string>
#include <string_view>

#include "net/http/http_server.h"
#include "server/request/errors.h"

namespace lockstep {

class ApiContext;

// The part of the list that the query asks for. At most one cursor is set.
struct ModelPage {
  size_t limit = 20;
  std::string after_id;   // the first ones after this model
  std::string before_id;  // the last ones before it
};

ApiResult<ModelPage> parse_model_page(std::string_view query);

HttpResponse list_anthropic_models(const ApiContext& context, const HttpRequest& request);
// `id` may contain slashes.
HttpResponse show_anthropic_model(const ApiContext& context, const HttpRequest& request,
                                  std::string_view id);

}  // namespace lockstep
