// GET /v1/models and /v1/models/{id}.
#pragma once

#include <memory>
#include <string_view>

#include "net/http/http_server.h"
#include "node/models/model_service.h"
#include "server/request/errors.h"

namespace lockstep {

class ApiContext;

// The model that is asked about. Does not count as a use of the model, except by an alias.
ApiResult<std::shared_ptr<ModelService>> find_listed_model(const ApiContext& context,
                                                           std::string_view id);

HttpResponse list_models(const ApiContext& context);
// `id` may contain slashes.
HttpResponse show_model(const ApiContext& context, std::string_view id);

}  // namespace lockstep
