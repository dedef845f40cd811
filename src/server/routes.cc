#include "server/routes.h"

#include <fmt/core.h>

#include <string>
#include <string_view>
#include <utility>

#include "access/access_control.h"
#include "base/check.h"
#include "base/utf8.h"
#include "server/anthropic/anthropic_messages.h"
#include "server/anthropic/anthropic_models.h"
#include "server/browser/demo_routes.h"
#include "server/browser/page_routes.h"
#include "server/browser/session_routes.h"
#include "server/generation/api_context.h"
#include "server/inspection/doctor_route.h"
#include "server/inspection/hub_route.h"
#include "server/inspection/log_route.h"
#include "server/inspection/plan_route.h"
#include "server/ollama/ollama_embed.h"
#include "server/ollama/ollama_models.h"
#include "server/ollama/ollama_routes.h"
#include "server/openai/openai_chat.h"
#include "server/openai/openai_completions.h"
#include "server/openai/openai_embeddings.h"
#include "server/openai/openai_models.h"
#include "server/openai/openai_responses.h"
#include "server/openai/stream_routes.h"
#include "server/openai/verify_route.h"
#include "server/operations/cluster_events.h"
#include "server/operations/cluster_requests.h"
#include "server/operations/cluster_routes.h"
#include "server/operations/cluster_status.h"
#include "server/operations/control_routes.h"
#include "server/operations/disk_routes.h"
#include "server/operations/health.h"
#include "server/operations/node_metrics.h"
#include "server/request/request_id.h"
#include "server/token_routes.h"

namespace lockstep {
namespace {

constexpr std::string_view kApiVersion = "/v1";
constexpr std::string_view kModelPrefix = "/models/";
constexpr size_t kControlBodyBytesMax = 64 << 10;

// Where a request is served: on the event loop, by a worker because parsing takes long, in a
// cluster by a worker that calls the cluster, or by one that waits for disks, other nodes or the
// hub.
enum class ServedBy { kLoop, kWorker, kClusterWorker, kSlowWorker };

struct Route {
  std::string_view method;
  std::string_view path;  // with a slash at the end, the rest is an argument
  bool is_api;            // also under /v1
  ServedBy served_by;
  RouteAccess access;
  void (*serve)(ApiContext&, const HttpRequest&, const HttpReply&);
};

// Two APIs share these routes, each with its own format.
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

void serve_health(ApiContext& context, const HttpRequest& request, const HttpReply& reply) {
  reply.send(health(context, request));
}

void serve_node_metrics(ApiContext& context, const HttpRequest&, const HttpReply& reply) {
  reply.send(serve_metrics(context));
}

void serve_cluster_status(ApiContext& context, const HttpRequest& request, const HttpReply& reply) {
  reply.send(cluster_status(context, request));
}

constexpr Route kRoutes[] = {
    {"GET", "/", false, ServedBy::kLoop, RouteAccess::kAnybody, serve_page},
    {"GET", kAssetsPrefix, false, ServedBy::kLoop, RouteAccess::kAnybody, serve_asset},
    {"GET", "/health", false, ServedBy::kLoop, RouteAccess::kAnybody, serve_health},
    {"GET", "/metrics", false, ServedBy::kClusterWorker, RouteAccess::kLook, serve_node_metrics},
    {"GET", "/cluster/status", false, ServedBy::kClusterWorker, RouteAccess::kLook,
     serve_cluster_status},
    {"GET", kEventsPath, false, ServedBy::kLoop, RouteAccess::kLook, serve_cluster_events},
    {"GET", "/cluster/requests", false, ServedBy::kClusterWorker, RouteAccess::kLook,
     serve_cluster_requests},
    {"DELETE", kRequestsPrefix, false, ServedBy::kLoop, RouteAccess::kLook, serve_request_cancel},
    {"POST", "/cluster/load", false, ServedBy::kClusterWorker, RouteAccess::kControl,
     serve_cluster_load},
    {"POST", "/cluster/unload", false, ServedBy::kClusterWorker, RouteAccess::kControl,
     serve_cluster_unload},
    {"POST", "/cluster/restart", false, ServedBy::kClusterWorker, RouteAccess::kControl,
     serve_cluster_restart},
    {"POST", "/cluster/token", false, ServedBy::kClusterWorker, RouteAccess::kControl,
     serve_cluster_token},
    {"POST", "/cluster/plan", false, ServedBy::kWorker, RouteAccess::kLook, serve_cluster_plan},
    {"GET", "/cluster/disk", false, ServedBy::kSlowWorker, RouteAccess::kLook, serve_cluster_disk},
    {"DELETE", "/cluster/disk", false, ServedBy::kSlowWorker, RouteAccess::kControl,
     serve_disk_removal},
    {"POST", "/cluster/pull", false, ServedBy::kSlowWorker, RouteAccess::kControl, serve_pull},
    {"DELETE", "/cluster/pull", false, ServedBy::kSlowWorker, RouteAccess::kControl,
     serve_pull_end},
    {"GET", "/cluster/doctor", false, ServedBy::kSlowWorker, RouteAccess::kControl,
     serve_cluster_doctor},
    {"GET", "/cluster/log", false, ServedBy::kLoop, RouteAccess::kControl, serve_cluster_log},
    {"GET", "/hub/search", false, ServedBy::kSlowWorker, RouteAccess::kControl, serve_hub_search},
    {"GET", "/control/proof", false, ServedBy::kLoop, RouteAccess::kAnybody, serve_control_proof},
    {"POST", "/control/page", false, ServedBy::kLoop, RouteAccess::kControl, serve_page_code},
    {"GET", kPagePrefix, false, ServedBy::kLoop, RouteAccess::kAnybody, serve_page_entry},
    {"GET", "/session", true, ServedBy::kLoop, RouteAccess::kAnybody, serve_session},
    {"POST", "/session", true, ServedBy::kLoop, RouteAccess::kAnybody, serve_session_start},
    {"DELETE", "/session", true, ServedBy::kLoop, RouteAccess::kAnybody, serve_session_end},
    {"POST", "/demo/kill", false, ServedBy::kLoop, RouteAccess::kLook, serve_demo_kill},
    {"GET", "/models", true, ServedBy::kLoop, RouteAccess::kUse, serve_models},
    {"GET", kModelPrefix, true, ServedBy::kLoop, RouteAccess::kUse, serve_model},
    {"POST", "/completions", true, ServedBy::kWorker, RouteAccess::kUse, serve_completion},
    {"POST", "/chat/completions", true, ServedBy::kWorker, RouteAccess::kUse, serve_chat},
    {"POST", "/verify", true, ServedBy::kWorker, RouteAccess::kUse, serve_verify},
    {"GET", kStreamsPath, true, ServedBy::kLoop, RouteAccess::kResume, serve_streams},
    {"GET", kStreamPrefix, true, ServedBy::kLoop, RouteAccess::kResume, serve_stream},
    {"DELETE", kStreamPrefix, true, ServedBy::kLoop, RouteAccess::kResume, serve_stream_end},
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
  if (route.is_api && path.substr(0, 4) == "/v1/") path.remove_prefix(kApiVersion.size());
  const bool takes_rest = route.path.size() > 1 && route.path.back() == '/';
  return takes_rest ? path.substr(0, route.path.size()) == route.path && path != route.path
                    : path == route.path;
}

// Null: the event loop.
RequestWorkers* workers_of(const Route& route, ApiContext& context) {
  switch (route.served_by) {
    case ServedBy::kLoop:
      return nullptr;
    case ServedBy::kWorker:
      return &context.workers();
    case ServedBy::kClusterWorker:
      return context.cluster_workers();
    case ServedBy::kSlowWorker:
      return &context.slow_workers();
  }
  return nullptr;
}

void serve_route(const Route& route, ApiContext& context, HttpRequest request,
                 const HttpReply& reply) {
  RequestWorkers* const workers = workers_of(route, context);
  if (workers == nullptr) return route.serve(context, request, reply);
  RequestJob job{.caller = reply.caller(), .run = {}, .on_failure = {}};
  job.on_failure = [reply, style = error_style_of(request), id = std::string(request_id(request))](
                       const ApiError& error) { reply.send(error_response(error, style, id)); };
  job.run = [serve = route.serve, &context, request = std::move(request), reply] {
    serve(context, request, reply);
  };
  const auto refuse = job.on_failure;
  const auto work = workers->start(std::move(job));
  if (work == nullptr) {
    return refuse(
        {429, "too many requests are waiting to be read, try again later", "", "queue_full"});
  }
  // The workers outlive the connections; the work does not outlive its job.
  reply.on_disconnect([workers, weak = std::weak_ptr<const Work>(work)] {
    if (const auto left = weak.lock()) workers->cancel(left);
  });
}

// Null if there is none; `allowed` then lists the methods that the path has, empty for an unknown
// path.
const Route* find_route(const HttpRequest& request, std::string& allowed) {
  for (const Route& candidate : kRoutes) {
    if (!is_match(candidate, request.path)) continue;
    if (candidate.method == request.method) return &candidate;
    if (!allowed.empty()) allowed += ", ";
    allowed += candidate.method == "GET" ? "GET, HEAD" : std::string(candidate.method);
  }
  return nullptr;
}

// "/v1/models, /v1/chat/completions, ...": each path once, as in the table.
std::string served_paths() {
  std::string paths;
  std::string_view last;
  for (const Route& route : kRoutes) {
    if (route.serve == refuse_ollama || std::exchange(last, route.path) == route.path) continue;
    if (!paths.empty()) paths += ", ";
    if (route.is_api) paths += kApiVersion;
    paths += route.path;
  }
  return paths;
}

HttpResponse no_such_route(const HttpRequest& request, const std::string& allowed) {
  const std::string method = request.method.substr(0, 16);
  if (!allowed.empty()) {
    HttpResponse response = error_response(
        {405, fmt::format("{} does not accept {}, only {}", request.path, method, allowed), "",
         "method_not_allowed"},
        error_style_of(request), request_id(request));
    response.headers.emplace_back("Allow", allowed);
    return response;
  }
  const std::string path = replace_invalid_utf8(std::string_view(request.path).substr(0, 200));
  return error_response(
      {404, fmt::format("there is no route {} {}; the routes are {}", method, path, served_paths()),
       "", "route_not_found"},
      error_style_of(request), request_id(request));
}

// Requests about the node itself and orders to the cluster are short. A stream of events is not: it
// would keep a connection that is reserved for them.
bool is_control(const Route& route) {
  return route.access != RouteAccess::kUse && route.access != RouteAccess::kResume &&
         route.path != kEventsPath;
}

}  // namespace

HttpAdmission admit(ApiContext& context, HttpRequest& head) {
  if (auto preflight = context.access().preflight(head)) return {.answer = std::move(preflight)};
  give_request_id(head);
  std::string allowed;
  const Route* const route = find_route(head, allowed);
  if (route == nullptr) {
    return {.answer = no_such_route(head, allowed), .terms = with_request_id({}, head)};
  }
  HttpAdmission admission;
  admission.is_control = is_control(*route);
  if (admission.is_control || route->method != "POST") {
    admission.body_bytes_max = kControlBodyBytesMax;
  }
  auto terms = context.access().admit(head, route->access);
  if (!terms.ok()) {
    admission.terms = with_request_id({.headers = context.access().headers(head)}, head);
    admission.answer = error_response(terms.error(), error_style_of(head), request_id(head));
    return admission;
  }
  admission.is_preferred = context.access().is_preferred(head);
  if (route->access == RouteAccess::kUse) {
    terms.value().client = context.access().client_name(head);
    terms.value().route = head.path;
  }
  admission.terms = with_request_id(std::move(terms.value()), head);
  return admission;
}

void route(ApiContext& context, HttpRequest request, const HttpReply& reply) {
  std::string allowed;
  const Route* const found = find_route(request, allowed);
  LOCKSTEP_CHECK(found != nullptr);  // else admit() has answered
  if (const auto body = context.access().check_body(request); !body.ok()) {
    return reply.send(error_response(body.error(), error_style_of(request), request_id(request)));
  }
  if (found->serve != serve_chat && found->serve != serve_completion) {
    if (const auto header = refuse_stream_header(request); !header.ok()) {
      const auto style = error_style_of(request);
      return reply.send(error_response(header.error(), style, request_id(request)));
    }
  }
  serve_route(*found, context, std::move(request), reply);
}

}  // namespace lockstep
