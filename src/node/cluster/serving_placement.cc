#include "node/cluster/serving_placement.h"

#include <algorithm>

namespace lockstep {
namespace {

void look_at(const NodeId& reporter, const std::vector<PlacementShare>& parts,
             const DesiredEntry& entry, int64_t key, std::vector<ServingPlacement>& found) {
  for (const PlacementShare& part : parts) {
    const bool is_meant = part.model == entry.name && part.key == key;
    if (!is_meant || part.state != PartState::kReady || part.ranks.empty()) continue;
    if (part.ranks.front().node != reporter) continue;
    found.push_back({.epoch = part.epoch, .owner = reporter, .plan = {part.ranks, part.stages}});
  }
}

}  // namespace

std::vector<ServingPlacement> serving_placements(const Brain& brain, const NodeId& self,
                                                 const DesiredEntry& entry, size_t groups) {
  const int64_t key = placement_key(entry);
  std::vector<ServingPlacement> found;
  look_at(self, brain.parts().reports(), entry, key, found);
  for (const auto& [id, member] : brain.membership().members()) {
    if (member.is_alive() && member.last) look_at(id, member.last->parts, entry, key, found);
  }
  std::sort(found.begin(), found.end(),
            [](const ServingPlacement& a, const ServingPlacement& b) { return a.epoch < b.epoch; });
  if (found.size() > groups) {
    found.erase(found.begin(), found.end() - static_cast<std::ptrdiff_t>(groups));
  }
  return found;
}

}  // namespace lockstep
