// A router's status and metrics. Pure functions over its state.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "json/json.h"
#include "router/backends.h"
#include "router/relay.h"

namespace lockstep {

// {"version", "running", "requests", ..., "backends": [{"url", "healthy", "problem", "models",
// "running", "requests", "failures"}]}
Json router_status(std::string_view version, std::span<const Backend> backends,
                   const RouterCounters& counters);
// In the text format of Prometheus.
std::string router_metrics(std::span<const Backend> backends, const RouterCounters& counters);

}  // namespace lockstep
