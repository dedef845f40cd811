// Reads successive statuses for `lockstep cluster restart`: in which order the nodes restart, and
// whether one is back. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "json/json.h"

namespace lockstep {

struct NodeToRestart {
  std::string id;
  std::string name;  // the first digits of the id if unknown
  std::string life;  // of its current run
  bool is_self = false;
};

// The named nodes, or all; by name, by id, or by its first 8 digits or more. The coordinator is
// last but one, so that its role moves only once, and the asked node is last. kInvalidArgument for
// a name that matches no node or several, kPeerLost for a node that does not answer.
Result<std::vector<NodeToRestart>> nodes_to_restart(const Json& status,
                                                    const std::vector<std::string>& names);

// The models that should be ready when all is well, once per group; not those loaded on demand.
std::vector<std::string> ready_models(const Json& status);

// Nullopt: the node is back with another `life`, and the groups of `models` are ready; else what is
// still missing.
std::optional<std::string> missing_after_restart(const Json& status, const NodeToRestart& node,
                                                 const std::vector<std::string>& models);

}  // namespace lockstep
