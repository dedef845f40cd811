// DataPaths: how one machine reaches another over data networks (--data-network), which its node
// has found out (node/network/shared_networks.h) and its workers use: each pair of ranks has one
// link, over the network that both prefer. Pure functions.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cluster/data_address.h"

namespace lockstep {

// An address of this machine and one of the other that reach each other. Numeric.
struct DataPath {
  std::string own;
  std::string peer;

  bool operator==(const DataPath&) const = default;
};

struct DataPaths {
  std::vector<DataPath> paths{};  // the preferred one first; at most kDataAddressesMax
  // Without paths: why, and what to do; empty: neither machine has a data network.
  std::string note{};

  bool operator==(const DataPaths&) const = default;
};

// The first path both ends of which are in the lists: the addresses of active RDMA ports. Without
// one the first; null without paths. Both ends choose the same.
const DataPath* best_path(const DataPaths& paths, std::span<const std::string> own_rdma,
                          std::span<const std::string> peer_rdma);

// By rank, for a worker's command line: JSON. kCorrupt for anything else.
std::string encode_data_paths(std::span<const DataPaths> ranks);
Result<std::vector<DataPaths>> decode_data_paths(std::string_view text);

}  // namespace lockstep
