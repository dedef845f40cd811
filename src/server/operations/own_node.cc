#include "server/operations/own_node.h"

#include "cluster/identity.h"
#include "server/generation/api_context.h"

namespace lockstep {

ClusterNodeReport own_node(const ApiContext& context) {
  ClusterNodeReport node;
  node.name = machine_name();
  node.version = context.version();
  node.state = "alive";
  node.is_self = node.is_coordinator = true;
  node.budget_bytes = context.budget_bytes();
  for (const auto& model : context.models()) {
    for (const RankStatus& rank : model->status().ranks) {
      node.promised_bytes += static_cast<int64_t>(rank.weight_bytes + rank.state_bytes);
    }
  }
  node.clock_ahead_s = 0;
  node.power_w = context.power_w();
  node.meters = context.machine_meters();
  return node;
}

}  // namespace lockstep
