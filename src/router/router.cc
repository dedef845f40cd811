#include "router/router.h"

#include <fmt/core.h>

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "base/check.h"
#include "router/error_answer.h"
#include "router/forwarding.h"
#include "router/router_status.h"

namespace lockstep {
namespace {

constexpr size_t kBackendsMax = 256;
constexpr std::string_view kModelPrefix = "/models/";
constexpr std::string_view kBareRoutes[] = {"/completions", "/chat/completions", "/embeddings"};

bool is_handed_on(const HttpRequest& request) {
  if (request.method != "POST") return false;
  return request.path.starts_with("/v1/") ||
         std::find(std::begin(kBareRoutes), std::end(kBareRoutes), request.path) !=
             std::end(kBareRoutes);
}

HttpCall call_of(HttpRequest request) {
  HttpCall call;
  call.method = request.method;
  call.target = forwarded_target(request);
  call.headers = forwarded_request_headers(request);
  call.body = std::move(request.body);
  return call;
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

// All but the server belongs to the loop's thread.
struct Router::Impl {
  explicit Impl(RouterOptions chosen) : options(std::move(chosen)), loop(EventLoop::start()) {
    loop->run_and_wait([this] {
      backends = std::make_unique<Backends>(*loop, options.backends, options.balance, options.poll);
      relay_context.emplace(
          Relay::Context{*loop, *backends, counters, options.relay,
                         [this](const std::shared_ptr<Relay>& relay) { on_done(relay); }});
    });
  }
  ~Impl() {
    loop->run_and_wait([this] {
      relays.clear();
      relay_context.reset();
      backends.reset();
    });
  }

  void serve(HttpRequest request, const HttpReply& reply);
  void hand_on(HttpCall call, RequestKey key, const HttpReply& reply);
  HttpResponse answer(const HttpRequest& request) const;
  HttpResponse answer_known(std::string_view path) const;
  void on_done(const std::shared_ptr<Relay>& relay) {
    bodies_bytes -= relay->body_bytes();
    relays.erase(relay);
  }

  const RouterOptions options;
  std::unique_ptr<EventLoop> loop;
  std::unique_ptr<Backends> backends;
  RouterCounters counters;
  std::optional<Relay::Context> relay_context;
  std::unordered_set<std::shared_ptr<Relay>> relays;
  size_t bodies_bytes = 0;           // of relays
  std::unique_ptr<HttpServer> http;  // goes first: its handlers use the rest
};

// On the server's thread: a long body is read here, where it holds up no answer under way.
void Router::Impl::serve(HttpRequest request, const HttpReply& reply) {
  if (!is_handed_on(request)) {
    return loop->post([this, request = std::move(request), reply] { reply.send(answer(request)); });
  }
  const auto body = parse_json(request.body);
  // What is no JSON goes to any backend, whose answer says so.
  RequestKey key = body.ok() ? read_request_key(request.path, body.value()) : RequestKey{};
  loop->post([this, call = call_of(std::move(request)), key = std::move(key), reply]() mutable {
    hand_on(std::move(call), std::move(key), reply);
  });
}

void Router::Impl::hand_on(HttpCall call, RequestKey key, const HttpReply& reply) {
  ++counters.requests;
  const size_t bytes = call.body.size();
  if (relays.size() >= static_cast<size_t>(options.requests_max) ||
      bodies_bytes + bytes > options.bodies_bytes_max) {
    ++counters.refused;
    return reply.send(
        error_answer(429,
                     fmt::format("the router has its maximum of {} requests or {} bytes of them",
                                 options.requests_max, options.bodies_bytes_max),
                     "queue_full"));
  }
  auto relay = std::make_shared<Relay>(*relay_context, std::move(call), std::move(key), reply);
  bodies_bytes += bytes;
  relays.insert(relay);
  relay->start();
}

HttpResponse Router::Impl::answer(const HttpRequest& request) const {
  if (request.method != "GET") {
    return error_answer(405, "the router hands on POST /v1/... and answers GET itself",
                        "method_not_allowed");
  }
  return answer_known(request.path);
}

HttpResponse Router::Impl::answer_known(std::string_view path) const {
  if (path == "/health") {
    if (backends->is_any_healthy()) return json_answer(JsonObject{{"status", "ok"}});
    return error_answer(503, "none of the backends answers", "no_backend");
  }
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
                      "the router has no such route; it has POST /v1/..., GET /v1/models, /health, "
                      "/router/status and /metrics",
                      "route_not_found");
}

Result<std::unique_ptr<Router>> Router::start(RouterOptions options) {
  TRY(check(options.backends));
  LOCKSTEP_CHECK(options.relay.kept_answer_bytes_max < options.limits.unsent_bytes_max);
  auto impl = std::make_unique<Impl>(std::move(options));
  HttpServer::Limits limits = impl->options.limits;
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
