// links: node
// Addresses that other nodes and their ranks tell, in two texts that a zero byte parts: nothing
// crashes, accepted ones are written so that they read back the same, and two machines that know
// each other's addresses find the same paths, each from its own end.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "node/network/shared_networks.h"
#include "node/wire/data_paths.h"
#include "node/wire/messages.h"

using namespace lockstep;

namespace {

std::vector<RankListening> checked_listening(std::string_view text) {
  auto ranks = decode_listening(text);
  if (!ranks.ok()) return {};
  const auto again = decode_listening(encode_listening(ranks.value()));
  LOCKSTEP_CHECK(again.ok() && again.value() == ranks.value());
  return std::move(ranks.value());
}

void check_paths(std::string_view text) {
  const auto ranks = decode_data_paths(text);
  if (!ranks.ok()) return;
  const auto again = decode_data_paths(encode_data_paths(ranks.value()));
  LOCKSTEP_CHECK(again.ok() && again.value() == ranks.value());
}

// The port of a rank stands for the length of its network.
DataNode node_of(uint8_t number, const std::vector<RankListening>& ranks) {
  std::array<std::byte, NodeId::kBytes> id{};
  id[0] = static_cast<std::byte>(number);
  DataNode node{.id = NodeId(id), .name = ""};
  for (const RankListening& rank : ranks) {
    for (const std::string& host : rank.rdma_hosts) {
      if (node.addresses.size() < kDataAddressesMax) node.addresses.push_back({host, rank.port});
    }
  }
  return node;
}

void check_both_ends(const std::vector<RankListening>& here,
                     const std::vector<RankListening>& there) {
  const DataNode own = node_of(1, here), peer = node_of(2, there);
  const auto no_route = [](const std::string&) { return std::string(); };
  const DataPaths from_here = paths_between({}, own, peer, no_route);
  DataPaths from_there = paths_between({}, peer, own, no_route);
  LOCKSTEP_CHECK(from_here.paths.size() <= kDataAddressesMax);
  for (DataPath& path : from_there.paths) std::swap(path.own, path.peer);
  LOCKSTEP_CHECK(from_here == from_there);
  for (const RankListening& a : here) {
    for (const RankListening& b : there) {
      const DataPath* const best = best_path(from_here, a.rdma_hosts, b.rdma_hosts);
      LOCKSTEP_CHECK((best == nullptr) == from_here.paths.empty());
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const size_t end = std::min(text.find('\0'), text.size());
  const std::string_view first = text.substr(0, end);
  const std::string_view second = text.substr(std::min(end + 1, text.size()));
  check_paths(first);
  check_both_ends(checked_listening(first), checked_listening(second));
  return 0;
}
