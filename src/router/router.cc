#include "router/router.h"

#include <fmt/core.h>

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "access/request_workers.h"
#include "base/check.h"
#include "base/machine/machine.h"
#include "router/error_answer.h"
#include "router/forwarding.h"
#include "router/router_status.h"

namespace lockstep {
namespace {

constexpr size_t kBackendsMax = 256;
constexpr std::string_view kModelPrefix = "/models/";
constexpr std::string_view kBareRoutes[] = {"/completions", "/chat/completions", "/embeddings"};

constexpr std::string_view kControlRoutes[] = {"/health", "/router/status", "/metrics"};
constexpr size_t kOwnBodyBytesMax = 64 << 10;  // for requests that the router answers itself

bool is_handed_on(const HttpRequest& request) {
  if (request.method != "POST") return false;
  return request.path.starts_with("/v1/") ||
         std::find(std::begin(kBareRoutes), std::end(kBareRoutes), request.path) !=
             std::end(kBareRoutes);
}

bool is_control(const HttpRequest& head) {
  return std::find(std::begin(kControlRoutes), std::end(kControlRoutes), head.path) !=
         std::end(kControlRoutes);
}

HttpCall call_of(HttpRequest request) {
  HttpCall call;
  call.method = request.method;
  call.target = forwarded_target(request);
  call.headers = forwarded_request_headers(request);
  call.shared_body = std::make_shared<const std::string>(std::move(request.body));
  return call;
}

RouteAccess access_for(const HttpRequest& request) {
  if (request.path == "/health" || request.path == "/version") return RouteAccess::kAnybody;
  const bool tells_of_router = request.path == "/router/status" || request.path == "/metrics";
  return tells_of_router ? RouteAccess::kLook : RouteAccess::kUse;
}

HttpResponse refusal(const ApiError& error) {
  HttpResponse response = error_answer(error.status, error.message, error.code);
  if (error.status == 429) {
    response.headers = {{"Retry-After", std::to_string(error.retry_after_s)}};
  }
  if (error.status == 401) response.headers.emplace_back("WWW-Authenticate", "Bearer");
  return response;
}

HttpResponse json_answer(const Json& value) {
  return {200, "application/json", dump_json(value), {}};
}

HttpResponse show_model(const JsonArray& models, std::string_view id) {
  for (const Json& model : models) {
    if (is_name_of(id, find(model, "id")->get_string())) return json_answer(model);
  }
  return error_answer(404, "no backend has this model; GET /v1/models lists them",
                      "model_not_found");
}

Status check(const std::vector<NetAddress>& backends) {
  if (backends.empty() || backends.size() > kBackendsMax) {
    return Error{ErrorCode::kInvalidArgument, fmt::format("a router has 1 to {} backends, not {}",
                                                          kBackendsMax, backends.size())};
  }
  std::vector<std::string> names;
  names.reserve(backends.size());
  for (const NetAddress& backend : backends) names.push_back(backend.text());
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice == names.end()) return Ok{};
  return Error{ErrorCode::kInvalidArgument, fmt::format("the backend {} is named twice", *twice)};
}

}  // namespace

// Everything except the server belongs to the loop's thread.
struct Router::Impl {
  Impl(RouterOptions chosen, std::unique_ptr<AccessControl> access_control)
      : options(std::move(chosen)), access(std::move(access_control)), loop(EventLoop::start()) {
    loop->must_run([this] {
      backends = std::make_unique<Backends>(*loop, options.backends, options.balance, options.poll);
      relay_context.emplace(
          Relay::Context{*loop, *backends, counters, options.relay,
                         [this](const std::shared_ptr<Relay>& relay) { on_done(relay); }});
    });
  }
  ~Impl() {
    loop->must_run([this] {
      relays.clear();
      relay_context.reset();
      backends.reset();
    });
  }

  HttpAdmission admit(HttpRequest& head) const;
  void serve(HttpRequest request, const HttpReply& reply);
  void read(HttpRequest request, const HttpReply& reply);
  void hand_on(Relay::Request request, const HttpReply& reply);
  HttpResponse answer(const HttpRequest& request) const;
  HttpResponse answer_known(std::string_view path) const;
  void on_done(const std::shared_ptr<Relay>& relay) { relays.erase(relay); }

  const RouterOptions options;
  const std::unique_ptr<AccessControl> access;  // used on the server's thread
  std::unique_ptr<EventLoop> loop;
  std::unique_ptr<Backends> backends;
  RouterCounters counters;
  std::optional<Relay::Context> relay_context;
  std::unordered_set<std::shared_ptr<Relay>> relays;
  RequestWorkers readers{RequestWorkers::thread_count(available_core_count())};
  std::unique_ptr<HttpServer> http;  // destroyed first: its handlers use the rest
};

// By the head, before the body is read (HttpServer::Limits::admit).
HttpAdmission Router::Impl::admit(HttpRequest& head) const {
  HttpAdmission admission;
  admission.answer = access->preflight(head);
  if (admission.answer) return admission;
  const bool stays_here = !is_handed_on(head);
  if (stays_here) admission.body_bytes_max = kOwnBodyBytesMax;
  admission.is_control = stays_here && is_control(head);
  auto terms = access->admit(head, access_for(head));
  if (!terms.ok()) {
    admission.terms = {.headers = access->headers(head)};
    admission.answer = refusal(terms.error());
    return admission;
  }
  admission.is_preferred = access->is_preferred(head);
  admission.terms = std::move(terms.value());
  if (stays_here && head.method != "GET") {
    admission.answer = error_answer(405, "the router forwards POST /v1/... and answers GET itself",
                                    "method_not_allowed");
  }
  return admission;
}

// On the server's thread. Bodies are read on others: a long one delays no answer.
void Router::Impl::serve(HttpRequest request, const HttpReply& reply) {
  if (!is_handed_on(request)) {
    return loop->post([this, request = std::move(request), reply] { reply.send(answer(request)); });
  }
  RequestJob job{.caller = reply.caller(), .run = {}, .on_failure = {}};
  job.on_failure = [reply](const ApiError& error) { reply.send(refusal(error)); };
  job.run = [this, request = std::make_shared<HttpRequest>(std::move(request)), reply] {
    read(std::move(*request), reply);
  };
  const auto work = readers.start(std::move(job));
  if (work == nullptr) {
    return reply.send(error_answer(429, "too many requests are waiting to be read", "queue_full"));
  }
  // The readers outlive the connections; the work does not outlive its job.
  reply.on_disconnect([this, weak = std::weak_ptr<const Work>(work)] {
    if (const auto left = weak.lock()) readers.cancel(left);
  });
}

// On a thread of the readers, with their limits. Invalid JSON, and what takes too long to read,
// goes to any backend, whose answer reports it.
void Router::Impl::read(HttpRequest request, const HttpReply& reply) {
  RequestKey key;
  if (const auto body = parse_untrusted_json(request.body); body.ok()) {
    key = read_request_key(request.path, body.value());
  }
  Relay::Request wanted{.call = {}, .key = std::move(key), .body_hold = request.body_hold};
  wanted.call = call_of(std::move(request));
  loop->post(
      [this, wanted = std::move(wanted), reply]() mutable { hand_on(std::move(wanted), reply); });
}

void Router::Impl::hand_on(Relay::Request request, const HttpReply& reply) {
  if (!relay_context) return;  // the router ends
  ++counters.requests;
  if (relays.size() >= static_cast<size_t>(options.requests_max)) {
    ++counters.refused;
    return reply.send(error_answer(
        429, fmt::format("the router has its maximum of {} requests", options.requests_max),
        "queue_full"));
  }
  auto relay = std::make_shared<Relay>(*relay_context, std::move(request), reply);
  relays.insert(relay);
  relay->start();
}

HttpResponse Router::Impl::answer(const HttpRequest& request) const {
  return answer_known(request.path);
}

HttpResponse Router::Impl::answer_known(std::string_view path) const {
  if (path == "/health") {
    if (backends->is_any_healthy()) return json_answer(JsonObject{{"status", "ok"}});
    return error_answer(503, "none of the backends answers", "no_backend");
  }
  if (path == "/version") return json_answer(JsonObject{{"version", options.version}});
  if (path == "/router/status") {
    return json_answer(router_status(options.version, backends->all(), counters));
  }
  if (path == "/metrics") {
    return {200,
            "text/plain; version=0.0.4; charset=utf-8",
            router_metrics(backends->all(), counters),
            {}};
  }
  if (path.starts_with("/v1/")) path.remove_prefix(3);
  if (path == "/models") {
    return json_answer(JsonObject{{"object", "list"}, {"data", backends->models()}});
  }
  if (path.starts_with(kModelPrefix)) {
    return show_model(backends->models(), path.substr(kModelPrefix.size()));
  }
  return error_answer(404,
                      "the router does not have this route; it has POST /v1/..., GET /v1/models, "
                      "/health, /router/status, /metrics and /version",
                      "route_not_found");
}

Result<std::unique_ptr<Router>> Router::start(RouterOptions options) {
  TRY(check(options.backends));
  LOCKSTEP_CHECK(options.relay.kept_answer_bytes_max < options.limits.unsent_bytes_max);
  auto access = TRY(AccessControl::open(options.access));
  TRY(access->check_host(options.host));
  auto impl = std::make_unique<Impl>(std::move(options), std::move(access));
  HttpServer::Limits limits = impl->options.limits;
  limits.bodies_bytes_max = impl->options.bodies_bytes_max;
  limits.admit = [impl = impl.get()](HttpRequest& head) { return impl->admit(head); };
  limits.error_body = [](int status, std::string_view message, std::string_view) {
    return error_body(status, message, "bad_request");
  };
  impl->http =
      TRY(HttpServer::listen(impl->options.host, impl->options.port, std::move(limits),
                             [impl = impl.get()](HttpRequest request, const HttpReply& reply) {
                               impl->serve(std::move(request), reply);
                             }));
  return std::unique_ptr<Router>(new Router(std::move(impl)));
}

Router::Router(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Router::~Router() = default;

uint16_t Router::port() const {
  return impl_->http->port();
}
void Router::run() {
  impl_->http->run();
}
void Router::stop() {
  impl_->http->stop();
}

}  // namespace lockstep
