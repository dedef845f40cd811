// How commands prove to a node that they may control it: with the secret of its folder, sent only
// to a node that has proved to know it.
#pragma once

#include <optional>
#include <string>

#include "cli/client/node_client.h"

namespace lockstep {

struct NodeControl {
  std::optional<std::string> secret;
  std::string missing;  // why there is none; added to the node's refusal
};

// Queries the node, with a deadline. Nodes of other machines are sent no secret.
NodeControl control_of(const NodeFlags& flags);

}  // namespace lockstep
