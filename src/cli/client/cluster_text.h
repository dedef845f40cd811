// The /cluster/status of a cluster, as lines for people. Pure functions of its JSON.
#pragma once

#include <string>
#include <vector>

#include "json/json.h"

namespace lockstep {

// The nodes as a table, and the PINs to be typed elsewhere; empty if the node is in no cluster.
std::vector<std::string> cluster_lines(const Json& status);

inline constexpr size_t kShortIdDigits = 8;  // of a node's id, as shown to people
// Its name; without one, the first digits of its id.
std::string name_of_node(const Json& node);
// The sentence about a machine that asks to join: an entry of "pins".
std::string pin_text(const Json& pin);

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
