// GET /v1/models and /v1/models/{id} in the shape of Anthropic's API, for requests with the header
// anthropic-version, which all of its clients send.
#pragma once

#include <string>
#include <string_view>

#include "net/http_server.h"
#include "server/errors.h"

namespace lockstep {

class ApiContext;

// Which part of the list is asked for, by the query of the request. At most one cursor is not
// empty.
struct ModelPage {
  size_t limit = 20;
  std::string after_id;   // the first ones behind this model
  std::string before_id;  // the last ones before it
};

ApiResult<ModelPage> parse_model_page(std::string_view query);

HttpResponse list_anthropic_models(const ApiContext& context, const HttpRequest& request);
// `id` may contain slashes.
HttpResponse show_anthropic_model(const ApiContext& context, const HttpRequest& request,
                                  std::string_view id);

}  // namespace lockstep
