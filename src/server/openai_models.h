// GET /v1/models and /v1/models/{id}.
#pragma once

#include <string_view>

#include "net/http_server.h"

namespace lockstep {

class ApiContext;

HttpResponse list_models(const ApiContext& context);
// `id` may contain slashes.
HttpResponse show_model(const ApiContext& context, std::string_view id);

}  // namespace lockstep
