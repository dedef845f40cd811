// What /cluster/status says of a cluster, as lines for people. Pure functions of its JSON.
#pragma once

#include <string>
#include <vector>

#include "json/json.h"

namespace lockstep {

// The nodes as a table, and the PINs to be typed elsewhere; nothing where the node is in no
// cluster.
std::vector<std::string> cluster_lines(const Json& status);

// "ready", or how far the cluster is with it.
std::string state_text(const Json& model);
// Why it waits, and which ranks are on which nodes: "alpha: rank 0, 1.20 GB".
std::vector<std::string> placement_lines(const Json& model);
// What of it is on the disk of the node that was asked: "1.20 GB of 4.50 GB on this disk"; empty
// where it is not said.
std::string disk_text(const Json& model);
// "alpha and beta"; empty where it is placed nowhere.
std::string placed_on(const Json& model);

}  // namespace lockstep
