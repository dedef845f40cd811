// The data networks that two nodes share, so that their ranks have links over them. Pure functions
// but for the question to the system's routes.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cluster/data_address.h"
#include "cluster/node_id.h"
#include "node/network/data_network.h"
#include "node/wire/data_paths.h"

namespace lockstep {

// A node and what it announces.
struct DataNode {
  NodeId id;
  std::string name;
  std::vector<DataAddress> addresses{};
};

// As own_address_towards().
using OwnAddressTowards = std::function<std::string(const std::string& host)>;

// How ranks of `own` reach those of `peer`. First their neighbouring addresses: in the order of the
// node with the smaller id, then in that of the other, so both nodes find the same. Without any,
// addresses in one of `networks` to which the system has a route from there. Else none, and a note.
DataPaths paths_between(const DataNetworks& networks, const DataNode& own, const DataNode& peer,
                        const OwnAddressTowards& towards);

}  // namespace lockstep
