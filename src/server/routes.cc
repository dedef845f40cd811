#include "server/routes.h"

#include <fmt/core.h>

#include <string>
#include <string_view>
#include <utility>

#include "base/utf8.h"
#include "server/access_control.h"
#include "server/anthropic_messages.h"
#include "server/anthropic_models.h"
#include "server/api_context.h"
#include "server/cluster_routes.h"
#include "server/cluster_status.h"
#include "server/health.h"
#include "server/node_metrics.h"
#include "server/ollama_embed.h"
#include "server/ollama_models.h"
#include "server/ollama_routes.h"
#include "server/openai_chat.h"
#include "server/openai_completions.h"
#include "server/openai_embeddings.h"
#include "server/openai_models.h"
#include "server/openai_responses.h"
#include "server/request_id.h"
#include "server/status_page.h"
#include "server/token_routes.h"

namespace lockstep {
namespace {

constexpr std::string_view kModelPrefix = "/models/";

// Where a request is served: on the event loop, by a worker because reading it takes long, or, if
// there is a cluster, by a worker because the cluster is asked.
enum class ServedBy { kLoop, kWorker, kClusterWorker };

struct Route {
  std::string_view method;
  std::string_view path;  // a slash at the end: the rest of the path is an argument
  bool is_api;            // also behind /v1
  ServedBy served_by;
  RouteAccess access;
  void (*serve)(ApiContext&, const HttpRequest&, const HttpReply&);
};

// Two APIs have these routes, each with a shape of its own.
bool is_for_anthropic(const HttpRequest& request) {
  return error_style_of(request) == ErrorStyle::kAnthropic;
}

void serve_models(ApiContext& context, const HttpRequest& request, const HttpReply& reply) {
  reply.send(is_for_anthropic(request) ? list_anthropic_models(context, request)
                                       : list_models(context));
}

void serve_model(ApiContext& context, const HttpRequest& request, const HttpReply& reply) {
  std::string_view id = request.path;
  id.remove_prefix(id.find(kModelPrefix) + kModelPrefix.size());
  reply.send(is_for_anthropic(request) ? show_anthropic_model(context, request, id)
                                       : show_model(context, id));
}

void serve_health(ApiContext& context, const HttpRequest&, const HttpReply& reply) {
  reply.send(health(context));
}

void serve_node_metrics(ApiContext& context, const HttpRequest&, const HttpReply& reply) {
  reply.send(serve_metrics(context));
}

void serve_cluster_status(ApiContext& context, const HttpRequest& request, const HttpReply& reply) {
  reply.send(cluster_status(context, request));
}

// Browsers say that they want a page; programs that say what they want and mean no page ask, as
// clients of Ollama do, whether anybody is there.
void serve_status_page(ApiContext&, const HttpRequest& request, const HttpReply& reply) {
  const std::string_view accepted = request.header("accept");
  if (accepted.empty() || accepted.find("text/html") != std::string_view::npos) {
    return reply.send(status_page());
  }
  reply.send({200, "text/plain; charset=utf-8", "Ollama is running", {{"Vary", "Accept"}}});
}

constexpr Route kRoutes[] = {
    {"GET", "/", false, ServedBy::kLoop, RouteAccess::kAnybody, serve_status_page},
    {"GET", "/health", false, ServedBy::kLoop, RouteAccess::kAnybody, serve_health},
    {"GET", "/metrics", false, ServedBy::kClusterWorker, RouteAccess::kLook, serve_node_metrics},
    {"GET", "/cluster/status", false, ServedBy::kClusterWorker, RouteAccess::kLook,
     serve_cluster_status},
    // These look at their callers themselves (local_caller.h).
    {"POST", "/cluster/load", false, ServedBy::kClusterWorker, RouteAccess::kAnybody,
     serve_cluster_load},
    {"POST", "/cluster/unload", false, ServedBy::kClusterWorker, RouteAccess::kAnybody,
     serve_cluster_unload},
    {"POST", "/cluster/restart", false, ServedBy::kClusterWorker, RouteAccess::kAnybody,
     serve_cluster_restart},
    {"POST", "/cluster/token", false, ServedBy::kClusterWorker, RouteAccess::kAnybody,
     serve_cluster_token},
    {"GET", "/models", true, ServedBy::kLoop, RouteAccess::kUse, serve_models},
    {"GET", kModelPrefix, true, ServedBy::kLoop, RouteAccess::kUse, serve_model},
    {"POST", "/completions", true, ServedBy::kWorker, RouteAccess::kUse, serve_completion},
    {"POST", "/chat/completions", true, ServedBy::kWorker, RouteAccess::kUse, serve_chat},
    {"POST", "/responses", true, ServedBy::kWorker, RouteAccess::kUse, serve_responses},
    {"POST", "/responses/", true, ServedBy::kLoop, RouteAccess::kUse, serve_stored_response},
    {"GET", "/responses/", true, ServedBy::kLoop, RouteAccess::kUse, serve_stored_response},
    {"DELETE", "/responses/", true, ServedBy::kLoop, RouteAccess::kUse, serve_stored_response},
    {"POST", "/messages", true, ServedBy::kWorker, RouteAccess::kUse, serve_messages},
    {"POST", "/messages/count_tokens", true, ServedBy::kWorker, RouteAccess::kUse,
     serve_count_tokens},
    {"POST", "/embeddings", true, ServedBy::kWorker, RouteAccess::kUse, serve_embeddings},
    {"POST", "/tokenize", false, ServedBy::kWorker, RouteAccess::kUse, serve_tokenize},
    {"POST", "/detokenize", false, ServedBy::kWorker, RouteAccess::kUse, serve_detokenize},
    {"GET", "/api/version", false, ServedBy::kLoop, RouteAccess::kAnybody, serve_ollama_version},
    {"GET", "/api/tags", false, ServedBy::kLoop, RouteAccess::kUse, serve_ollama_tags},
    {"GET", "/api/ps", false, ServedBy::kClusterWorker, RouteAccess::kUse, serve_ollama_ps},
    {"POST", "/api/show", false, ServedBy::kWorker, RouteAccess::kUse, serve_ollama_show},
    {"POST", "/api/chat", false, ServedBy::kWorker, RouteAccess::kUse, serve_ollama_chat},
    {"POST", "/api/generate", false, ServedBy::kWorker, RouteAccess::kUse, serve_ollama_generate},
    {"POST", "/api/embed", false, ServedBy::kWorker, RouteAccess::kUse, serve_ollama_embed},
    {"POST", "/api/embeddings", false, ServedBy::kWorker, RouteAccess::kUse,
     serve_ollama_embeddings},
    {"POST", "/api/pull", false, ServedBy::kLoop, RouteAccess::kUse, refuse_ollama},
    {"POST", "/api/push", false, ServedBy::kLoop, RouteAccess::kUse, refuse_ollama},
    {"POST", "/api/create", false, ServedBy::kLoop, RouteAccess::kUse, refuse_ollama},
    {"POST", "/api/copy", false, ServedBy::kLoop, RouteAccess::kUse, refuse_ollama},
    {"DELETE", "/api/delete", false, ServedBy::kLoop, RouteAccess::kUse, refuse_ollama},
    {"POST", "/api/blobs/", false, ServedBy::kLoop, RouteAccess::kUse, refuse_ollama},
};

bool is_match(const Route& route, std::string_view path) {
  constexpr std::string_view kVersion = "/v1";
  if (route.is_api && path.substr(0, 4) == "/v1/") path.remove_prefix(kVersion.size());
  const bool takes_rest = route.path.size() > 1 && route.path.back() == '/';
  return takes_rest ? path.substr(0, route.path.size()) == route.path && path != route.path
                    : path == route.path;
}

void serve_route(const Route& route, ApiContext& context, HttpRequest request,
                 const HttpReply& reply) {
  RequestWorkers* const workers = route.served_by == ServedBy::kWorker ? &context.workers()
                                  : route.served_by == ServedBy::kClusterWorker
                                      ? context.cluster_workers()
                                      : nullptr;
  if (workers == nullptr) return route.serve(context, request, reply);
  const ErrorStyle style = error_style_of(request);
  const std::string id(request_id(request));
  const bool is_accepted =
      workers->run([serve = route.serve, &context, request = std::move(request), reply] {
        serve(context, request, reply);
      });
  if (is_accepted) return;
  reply.send(error_response(
      {429, "too many requests wait to be read, try again later", "", "queue_full"}, style, id));
}

// Whether the request may go on; else it has been answered.
bool is_admitted(const Route& route, ApiContext& context, const HttpRequest& request,
                 const HttpReply& reply) {
  auto terms = context.access().admit(request, route.access);
  if (terms.ok()) {
    reply.set_terms(with_request_id(std::move(terms.value()), request));
    return true;
  }
  reply.set_terms(with_request_id({.headers = context.access().headers(request)}, request));
  reply.send(error_response(terms.error(), error_style_of(request), request_id(request)));
  return false;
}

}  // namespace

void route(ApiContext& context, HttpRequest request, const HttpReply& reply) {
  if (auto preflight = context.access().preflight(request)) {
    return reply.send(std::move(*preflight));
  }
  give_request_id(request);
  std::string allowed;
  for (const Route& candidate : kRoutes) {
    if (!is_match(candidate, request.path)) continue;
    if (candidate.method == request.method) {
      if (!is_admitted(candidate, context, request, reply)) return;
      return serve_route(candidate, context, std::move(request), reply);
    }
    allowed = candidate.method == "GET" ? "GET, HEAD" : std::string(candidate.method);
  }
  reply.set_terms(with_request_id({}, request));
  const std::string method = request.method.substr(0, 16);
  if (!allowed.empty()) {
    HttpResponse response = error_response(
        {405, fmt::format("{} does not take {}, only {}", request.path, method, allowed), "",
         "method_not_allowed"},
        error_style_of(request), request_id(request));
    response.headers.emplace_back("Allow", allowed);
    return reply.send(std::move(response));
  }
  const std::string path = replace_invalid_utf8(std::string_view(request.path).substr(0, 200));
  reply.send(error_response(
      {404,
       fmt::format("there is no route {} {}; there are /v1/models, /v1/chat/completions, "
                   "/v1/completions, /v1/responses, /v1/messages, /v1/embeddings, /api/chat "
                   "(Ollama's API), "
                   "/health, /metrics, "
                   "/cluster/status, /cluster/load, "
                   "/cluster/unload, /cluster/restart, /cluster/token and /",
                   method, path),
       "", "route_not_found"},
      error_style_of(request), request_id(request)));
}

}  // namespace lockstep
