// GroupPlans: one rank's plans, made at first use and kept. For collective/ only.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "collective/sums/cost.h"
#include "collective/sums/move_plan.h"
#include "collective/sums/sum_plan.h"

namespace lockstep {

class GroupPlans {
 public:
  // A model is cut in a handful of ways; beyond this the oldest is evicted.
  static constexpr size_t kSharesMax = 16;

  // One rank's part of a SumPlan.
  struct Sum {
    ExchangePlan exchange;
    int chunk_count = 1;
    int message_slots_max = 1;
  };
  struct Sums {
    LeafShares shares;
    SumChoice choice;
    std::array<std::unique_ptr<Sum>, kSumAlgorithms.size() + 1> plans;  // (SumAlgorithm)

    SumAlgorithm algorithm(size_t count) const;
    const Sum& plan(SumAlgorithm algorithm) const;  // only for algorithms that `choice` contains
  };

  GroupPlans(const GroupOptions& options, LinkGraph graph);

  const LinkGraph& graph() const { return graph_; }
  // The next rank on the way to `root`.
  int next_to(int root) const;
  // Whether this rank has or relays the bytes of `source` when `root` gathers.
  bool carries(int root, int source) const;

  const Sums& sums(const LeafShares& shares);
  const ExchangePlan& all_gather();
  const ExchangePlan& gather(int root);
  const ExchangePlan& broadcast(int root);

 private:
  using PlanPointer = std::unique_ptr<ExchangePlan>;

  Sums make_sums(const LeafShares& shares) const;

  int rank_;
  SumAlgorithm forced_;
  LinkGraph graph_;
  CostTable costs_;
  std::vector<std::vector<int>> parents_;  // (roots, ranks)
  std::vector<std::unique_ptr<Sums>> sums_;
  size_t oldest_ = 0;
  PlanPointer all_gather_;
  std::vector<PlanPointer> gathers_;     // (roots)
  std::vector<PlanPointer> broadcasts_;  // (roots)
};

}  // namespace lockstep
