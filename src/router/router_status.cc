#include "router/router_status.h"

#include <fmt/core.h>

#include <iterator>

namespace lockstep {
namespace {

struct NamedCounter {
  const char* name;
  uint64_t RouterCounters::*value;
  const char* meaning;
};

constexpr NamedCounter kCounters[] = {
    {"requests", &RouterCounters::requests, "Requests to forward."},
    {"answered", &RouterCounters::answered, "Answers that completed."},
    {"retried", &RouterCounters::retried, "Attempts that were retried on another backend."},
    {"failed", &RouterCounters::failed, "Requests that no backend answered."},
    {"broken", &RouterCounters::broken, "Answers that were cut off."},
    {"cancelled", &RouterCounters::cancelled, "Requests whose clients disconnected."},
    {"refused", &RouterCounters::refused, "Requests refused because the router had its maximum."},
};

Json backend_status(const Backend& backend) {
  JsonArray models;
  for (const Json& model : backend.models) models.push_back(*find(model, "id"));
  return JsonObject{{"url", backend.url},
                    {"healthy", backend.is_healthy},
                    {"problem", backend.problem.empty() ? Json(nullptr) : Json(backend.problem)},
                    {"models", std::move(models)},
                    {"running", backend.running},
                    {"requests", backend.request_count},
                    {"failures", backend.failure_count}};
}

// One metric with a value per backend; URLs contain no characters that need escaping.
template <class Value>
void add_backend_metric(std::string& out, const char* name, const char* type, const char* meaning,
                        std::span<const Backend> backends, Value value) {
  fmt::format_to(std::back_inserter(out), "# HELP {0} {1}\n# TYPE {0} {2}\n", name, meaning, type);
  for (const Backend& backend : backends) {
    fmt::format_to(std::back_inserter(out), "{}{{backend=\"{}\"}} {}\n", name, backend.url,
                   value(backend));
  }
}

}  // namespace

Json router_status(std::string_view version, std::span<const Backend> backends,
                   const RouterCounters& counters) {
  JsonObject status{{"version", version}};
  int running = 0;
  JsonArray each;
  for (const Backend& backend : backends) {
    running += backend.running;
    each.push_back(backend_status(backend));
  }
  status["running"] = running;
  for (const NamedCounter& counter : kCounters) status[counter.name] = counters.*counter.value;
  status["backends"] = std::move(each);
  return status;
}

std::string router_metrics(std::span<const Backend> backends, const RouterCounters& counters) {
  std::string out;
  for (const NamedCounter& counter : kCounters) {
    fmt::format_to(std::back_inserter(out),
                   "# HELP lockstep_router_{0}_total {1}\n# TYPE lockstep_router_{0}_total "
                   "counter\nlockstep_router_{0}_total {2}\n",
                   counter.name, counter.meaning, counters.*counter.value);
  }
  add_backend_metric(out, "lockstep_router_backend_up", "gauge", "Whether the backend is healthy.",
                     backends, [](const Backend& backend) { return backend.is_healthy ? 1 : 0; });
  add_backend_metric(out, "lockstep_router_backend_running", "gauge",
                     "Requests from this router that are in flight at the backend.", backends,
                     [](const Backend& backend) { return backend.running; });
  add_backend_metric(out, "lockstep_router_backend_requests_total", "counter",
                     "Requests that were sent to the backend.", backends,
                     [](const Backend& backend) { return backend.request_count; });
  add_backend_metric(out, "lockstep_router_backend_failures_total", "counter",
                     "Requests that the backend failed.", backends,
                     [](const Backend& backend) { return backend.failure_count; });
  return out;
}

}  // namespace lockstep
