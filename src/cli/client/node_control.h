// How commands prove to a node that they may control it: with a MAC over the request, made with the
// secret of the node's folder. The secret itself is never sent.
#pragma once

#include <optional>
#include <string>

#include "cli/client/node_client.h"
#include "net/http/http_client.h"

namespace lockstep {

struct NodeControl {
  std::optional<std::string> header;  // of kControlHeader, for one request
  std::string missing;                // why there is none; added to the node's refusal
};

// For this call, which is complete except for its headers. Queries the node, with a deadline. Nodes
// of other machines are not asked.
NodeControl control_of(const NodeFlags& flags, const HttpCall& call);

}  // namespace lockstep
