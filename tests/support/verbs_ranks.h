// Links over RDMA between ranks that are threads of a test, each with its own devices as if it were
// a machine. TCP in place of one of them fails the test.
#pragma once

#include "transport/verbs/verbs_api.h"

#ifdef LOCKSTEP_HAS_VERBS

#include <doctest/doctest.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "transport/form/local_links.h"
#include "transport/verbs/verbs_link.h"
#include "transport/verbs_pairs.h"

namespace lockstep {

struct VerbsRank {
  std::unique_ptr<VerbsDevices> devices;
  std::string host;  // the address of its RDMA port
};

// As after a rendezvous: connections[i][j] are rank i's rails to rank j.
inline std::vector<PeerConnections> connect_verbs_ranks(std::span<const VerbsRank> ranks,
                                                        const LinkOptions& options) {
  const int size = static_cast<int>(ranks.size());
  std::vector<PeerConnections> connections(ranks.size());
  for (PeerConnections& row : connections) row.resize(ranks.size());
  for (int low = 0; low < size; ++low) {
    for (int high = low + 1; high < size; ++high) {
      if (!is_joined(options.topology, size, low, high)) continue;
      const auto l = static_cast<size_t>(low), h = static_cast<size_t>(high);
      for (int rail = 0; rail < options.rails; ++rail) {
        SocketPair sockets(ranks[l].host.c_str(), ranks[h].host.c_str());
        connections[l][h].push_back({std::move(sockets.ends[0]), std::nullopt});
        connections[h][l].push_back({std::move(sockets.ends[1]), std::nullopt});
      }
    }
  }
  return connections;
}

// links[i][j] is rank i's link to rank j.
inline LocalLinks open_verbs_links(std::span<const VerbsRank> ranks, const LinkOptions& options,
                                   uint32_t epoch, size_t frame_bytes = 0) {
  std::vector<PeerConnections> connections = connect_verbs_ranks(ranks, options);
  std::vector<Result<VerbsUpgrade>> upgrades;
  for (size_t rank = 0; rank < ranks.size(); ++rank) upgrades.emplace_back(VerbsUpgrade{});
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    threads.emplace_back([&, rank] {
      upgrades[rank] =
          upgrade_to_verbs(std::move(connections[rank]), {.epoch = epoch,
                                                          .timeout = kVerbsTimeout,
                                                          .link = options,
                                                          .devices = ranks[rank].devices.get(),
                                                          .frame_bytes = frame_bytes});
    });
  }
  for (std::thread& thread : threads) thread.join();
  LocalLinks links;
  for (Result<VerbsUpgrade>& upgrade : upgrades) {
    REQUIRE_MESSAGE(upgrade.ok(), upgrade.error().message);
    REQUIRE_MESSAGE(upgrade.value().refusal == "", upgrade.value().refusal);
    links.push_back(std::move(upgrade.value().links));
  }
  return links;
}

// Checks that every link uses a queue pair of this kind. Not for rails, which hide theirs.
inline void check_are_verbs(const LocalLinks& links, bool reliable) {
  for (const auto& row : links) {
    for (const auto& link : row) {
      if (!link) continue;
      const auto* const verbs = dynamic_cast<const VerbsLink*>(link.get());
      REQUIRE(verbs != nullptr);
      CHECK(verbs->is_reliable() == reliable);
    }
  }
}

}  // namespace lockstep

#endif
