#include "node/cluster/serving_placement.h"

#include <algorithm>

namespace lockstep {
namespace {

void look_at(const NodeId& reporter, const std::vector<PlacementShare>& parts,
             std::string_view model, std::vector<ServingPlacement>& found) {
  for (const PlacementShare& part : parts) {
    if (part.model != model || part.state != PartState::kReady || part.ranks.empty()) continue;
    if (part.ranks.front().node != reporter) continue;
    found.push_back({.epoch = part.epoch, .owner = reporter, .plan = {part.ranks, part.stages}});
  }
}

}  // namespace

std::vector<ServingPlacement> serving_placements(const Brain& brain, const NodeId& self,
                                                 std::string_view model, size_t groups) {
  std::vector<ServingPlacement> found;
  look_at(self, brain.parts().reports(), model, found);
  for (const auto& [id, member] : brain.membership().members()) {
    if (member.is_alive() && member.last) look_at(id, member.last->parts, model, found);
  }
  std::sort(found.begin(), found.end(),
            [](const ServingPlacement& a, const ServingPlacement& b) { return a.epoch < b.epoch; });
  if (found.size() > groups) {
    found.erase(found.begin(), found.end() - static_cast<std::ptrdiff_t>(groups));
  }
  return found;
}

}  // namespace lockstep
