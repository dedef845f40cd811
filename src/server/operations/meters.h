// Meters: the event "meters" of GET /cluster/events: how busy machines, models and links are now.
// One thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "json/json.h"
#include "node/cluster/cluster_control.h"

namespace lockstep {

class ApiContext;

class Meters {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // {"nodes", "models", "links"}. Rates are means since the last look, and missing in the first
  // one. Requests are those of this node's clients.
  JsonObject look(const ApiContext& context, const ClusterReport& report, Time now);

 private:
  struct Counts {
    uint64_t generated_tokens = 0;
    uint64_t prompt_tokens = 0;  // computed
  };

  JsonArray models(const ApiContext& context, Time now);

  std::optional<Time> looked_;
  std::map<std::string, Counts> counts_;
};

// One node's figures, as far as they are known.
JsonObject node_meters_json(const ClusterNodeReport& node);

}  // namespace lockstep
