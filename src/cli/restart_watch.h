// What `lockstep cluster restart` reads from the node's status, which it asks again and again: in
// which order the nodes begin anew, and whether one is back. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "json/json.h"

namespace lockstep {

struct NodeToRestart {
  std::string id;
  std::string name;  // the first digits of the id where it was never told
  std::string life;  // that it leads now
  bool is_self = false;
};

// The nodes named, or all; by name, by id, or by the first 8 digits or more of one. The coordinator
// is the last but one, so that others take its place once, and the node that is asked the last.
// kInvalidArgument for a name that no node or several have, kPeerLost for a node that does not
// answer.
Result<std::vector<NodeToRestart>> nodes_to_restart(const Json& status,
                                                    const std::vector<std::string>& names);

// Those that should be ready when all is well, once for each group; not those that are loaded on
// demand.
std::vector<std::string> ready_models(const Json& status);

// Nullopt: it is there in another life, and the groups of `models` are ready; else what is still to
// come.
std::optional<std::string> missing_after_restart(const Json& status, const NodeToRestart& node,
                                                 const std::vector<std::string>& models);

}  // namespace lockstep
