// How often the hosts of a group wait for their devices in one pass, for tests that count
// exchanges.
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "collective/group/group.h"
#include "device/device.h"
#include "kernels/isa.h"
#include "model/forward/model.h"
#include "model/load/open_model.h"
#include "support/golden.h"
#include "transport/form/local_links.h"

namespace lockstep {

// The waits of each of `ranks` ranks with equal shares of a golden case; `options` say the rest.
inline std::vector<uint64_t> waits_of_a_pass(const std::string& golden_case, int ranks,
                                             const ModelOptions& options, const Batch& batch) {
  const auto opened = open_model(golden_folder(golden_case));
  REQUIRE(opened.ok());
  auto links = open_local_links({.kind = LinkKind::kShm}, ranks);
  REQUIRE(links.ok());
  std::vector<uint64_t> waits(static_cast<size_t>(ranks));
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < waits.size(); ++rank) {
    threads.emplace_back([&, rank] {
      Group group({.rank = static_cast<int>(rank), .links = std::move(links.value()[rank])});
      auto device = open_device({.kernels = available_kernels().back()});
      ModelOptions own = options;
      own.config = opened.value().config;
      own.source = opened.value().source;
      own.shares.assign(waits.size(), 1.0);
      auto model = Model::load(own, group, *device.value());
      if (!model.ok()) return;
      const uint64_t before = device.value()->wait_count();
      if (!model.value()->forward(batch).ok()) return;
      waits[rank] = device.value()->wait_count() - before;
    });
  }
  for (std::thread& thread : threads) thread.join();
  return waits;
}

}  // namespace lockstep
