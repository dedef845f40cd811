// links: planner
// Any cluster file gives machines and links that can be planned with, or is refused with a
// sentence.
#include <cmath>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "planner/cluster_file.h"

using namespace lockstep;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto cluster = parse_cluster({reinterpret_cast<const char*>(data), size});
  if (!cluster.ok()) {
    LOCKSTEP_CHECK(!cluster.error().message.empty());
    return 0;
  }
  const ClusterFacts& facts = cluster.value();
  LOCKSTEP_CHECK(!facts.machines.empty() && facts.machines.size() <= kPlannedMachinesMax);
  LOCKSTEP_CHECK(facts.links.size() == facts.machines.size());
  for (size_t a = 0; a < facts.machines.size(); ++a) {
    LOCKSTEP_CHECK(facts.machines[a].memory_bytes > 0);
    LOCKSTEP_CHECK(facts.machines[a].read_bytes_per_us > 0);
    for (size_t b = 0; b < a; ++b) {
      const auto& way = facts.links.between(a, b);
      LOCKSTEP_CHECK(way && way == facts.links.between(b, a));
      LOCKSTEP_CHECK(std::isfinite(message_us(*way, 4096)));
    }
  }
  return 0;
}
