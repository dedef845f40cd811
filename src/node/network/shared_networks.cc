#include "node/network/shared_networks.h"

#include <fmt/core.h>

#include <algorithm>

namespace lockstep {
namespace {

std::vector<DataPath> neighbours(const DataNode& own, const DataNode& peer) {
  const bool is_own_first = own.id < peer.id;
  const DataNode& first = is_own_first ? own : peer;
  const DataNode& second = is_own_first ? peer : own;
  std::vector<DataPath> paths;
  for (const DataAddress& a : first.addresses) {
    for (const DataAddress& b : second.addresses) {
      if (!are_neighbours(a, b) || a.host == b.host || paths.size() == kDataAddressesMax) continue;
      paths.push_back(is_own_first ? DataPath{a.host, b.host} : DataPath{b.host, a.host});
    }
  }
  return paths;
}

// A network of several cables or racks that routers join.
std::vector<DataPath> routed(const DataNetworks& networks, const DataNode& own,
                             const DataNode& peer, const OwnAddressTowards& towards) {
  std::vector<DataPath> paths;
  for (const DataAddress& there : peer.addresses) {
    const std::string from = towards(there.host);
    const bool is_announced = std::any_of(own.addresses.begin(), own.addresses.end(),
                                          [&](const DataAddress& one) { return one.host == from; });
    if (!is_announced || from == there.host || networks.shared(from, there.host) == nullptr) {
      continue;
    }
    paths.push_back({from, there.host});
  }
  return paths;
}

std::string note_of(const DataNode& own, const DataNode& peer) {
  if (own.addresses.empty() && peer.addresses.empty()) return "";
  if (own.addresses.empty() || peer.addresses.empty()) {
    return fmt::format(
        "{} has no address in a data network: give it one, and start it with --data-network too",
        own.addresses.empty() ? own.name : peer.name);
  }
  const bool is_own_first = own.id < peer.id;
  return fmt::format(
      "{} and {} have no data network in common: join the two with a cable, give both its ends "
      "addresses in one network, and name that in --data-network on both",
      is_own_first ? own.name : peer.name, is_own_first ? peer.name : own.name);
}

}  // namespace

DataPaths paths_between(const DataNetworks& networks, const DataNode& own, const DataNode& peer,
                        const OwnAddressTowards& towards) {
  DataPaths found{.paths = neighbours(own, peer)};
  if (found.paths.empty()) found.paths = routed(networks, own, peer, towards);
  if (found.paths.empty()) found.note = note_of(own, peer);
  return found;
}

}  // namespace lockstep
