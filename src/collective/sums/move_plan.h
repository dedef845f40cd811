// Plans of exchanges that only move bytes, over the shortest paths of a LinkGraph. A slot's part is
// the rank whose bytes it holds. For collective/ only.
#pragma once

#include "collective/plan/link_graph.h"
#include "collective/sums/exchange.h"

namespace lockstep {

// Slot r: the bytes of rank r. On a rank that neither needs nor relays them the slot has no
// messages.
ExchangePlan plan_all_gather(const LinkGraph& graph, int rank);
ExchangePlan plan_gather(const LinkGraph& graph, int rank, int root);
// Slot 0: the bytes of `root`.
ExchangePlan plan_broadcast(const LinkGraph& graph, int rank, int root);

}  // namespace lockstep
