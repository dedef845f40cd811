// The /cluster/status of a cluster, as lines for people. Pure functions of its JSON.
#pragma once

#include <string>
#include <vector>

#include "json/json.h"

namespace lockstep {

// The nodes as a table, and the PINs to be typed elsewhere; empty if the node is in no cluster.
std::vector<std::string> cluster_lines(const Json& status);

// "ready", or the progress of loading it.
std::string state_text(const Json& model);
// Why it waits, and which ranks are on which nodes: "alpha: rank 0, 1.20 GB".
std::vector<std::string> placement_lines(const Json& model);
// How much of it is on the asked node's disk: "1.20 GB of 4.50 GB on this disk"; empty if not
// reported.
std::string disk_text(const Json& model);
// "alpha and beta"; empty if it is not placed.
std::string placed_on(const Json& model);

}  // namespace lockstep
