#include "node/serving_placement.h"

#include <vector>

namespace lockstep {
namespace {

void look_at(const NodeId& reporter, const std::vector<PartReport>& parts, std::string_view model,
             std::optional<ServingPlacement>& best) {
  for (const PartReport& part : parts) {
    if (part.model != model || part.state != PartState::kReady || part.ranks.empty()) continue;
    if (part.ranks.front().node != reporter) continue;
    if (best && best->epoch >= part.epoch) continue;
    best = {.epoch = part.epoch, .owner = reporter, .plan = {part.ranks, part.stages}};
  }
}

}  // namespace

std::optional<ServingPlacement> serving_placement(const Brain& brain, const NodeId& self,
                                                  std::string_view model) {
  std::optional<ServingPlacement> best;
  look_at(self, brain.parts().reports(), model, best);
  for (const auto& [id, member] : brain.membership().members()) {
    if (member.is_alive() && member.last) look_at(id, member.last->parts, model, best);
  }
  return best;
}

}  // namespace lockstep
