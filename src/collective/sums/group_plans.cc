#include "collective/sums/group_plans.h"

#include <bit>
#include <utility>

#include "base/check.h"

namespace lockstep {

SumAlgorithm GroupPlans::Sums::algorithm(size_t count) const {
  return choice[static_cast<size_t>(std::bit_width(count))];
}

const GroupPlans::Sum& GroupPlans::Sums::plan(SumAlgorithm algorithm) const {
  const auto& plan = plans[static_cast<size_t>(algorithm)];
  LOCKSTEP_CHECK(plan);
  return *plan;
}

GroupPlans::GroupPlans(const GroupOptions& options, LinkGraph graph)
    : rank_(options.rank), forced_(options.algorithm), graph_(std::move(graph)) {
  const auto size = static_cast<size_t>(graph_.size());
  costs_ = CostTable::uniform(graph_.size(), {}, options.piece_bytes);
  LOCKSTEP_CHECK(options.link_costs.empty() || options.link_costs.size() == size * size);
  if (!options.link_costs.empty()) costs_.links = options.link_costs;
  for (int root = 0; root < graph_.size(); ++root) parents_.push_back(graph_.parents(root));
  gathers_.resize(size);
  broadcasts_.resize(size);
}

int GroupPlans::next_to(int root) const {
  return parents_[static_cast<size_t>(root)][static_cast<size_t>(rank_)];
}

bool GroupPlans::carries(int root, int source) const {
  int at = source;
  while (at != rank_ && at != root)
    at = parents_[static_cast<size_t>(root)][static_cast<size_t>(at)];
  return at == rank_;
}

const GroupPlans::Sums& GroupPlans::sums(const LeafShares& shares) {
  for (const auto& sums : sums_) {
    if (sums->shares == shares) return *sums;
  }
  auto made = std::make_unique<Sums>(make_sums(shares));
  if (sums_.size() < kSharesMax) {
    sums_.push_back(std::move(made));
    return *sums_.back();
  }
  oldest_ = (oldest_ + 1) % kSharesMax;
  sums_[oldest_] = std::move(made);
  return *sums_[oldest_];
}

GroupPlans::Sums GroupPlans::make_sums(const LeafShares& shares) const {
  Sums sums{.shares = shares, .choice = choose_sums(shares, graph_, costs_, forced_), .plans = {}};
  for (const SumAlgorithm algorithm : sums.choice) {
    auto& plan = sums.plans[static_cast<size_t>(algorithm)];
    if (plan) continue;
    SumPlan whole = plan_sum(shares, graph_, algorithm);
    plan = std::make_unique<Sum>();
    plan->exchange = std::move(whole.exchanges[static_cast<size_t>(rank_)]);
    plan->chunk_count = whole.chunk_count;
    plan->message_slots_max = whole.message_slots_max;
  }
  return sums;
}

const ExchangePlan& GroupPlans::all_gather() {
  if (!all_gather_) all_gather_ = std::make_unique<ExchangePlan>(plan_all_gather(graph_, rank_));
  return *all_gather_;
}

const ExchangePlan& GroupPlans::gather(int root) {
  auto& plan = gathers_[static_cast<size_t>(root)];
  if (!plan) plan = std::make_unique<ExchangePlan>(plan_gather(graph_, rank_, root));
  return *plan;
}

const ExchangePlan& GroupPlans::broadcast(int root) {
  auto& plan = broadcasts_[static_cast<size_t>(root)];
  if (!plan) plan = std::make_unique<ExchangePlan>(plan_broadcast(graph_, rank_, root));
  return *plan;
}

}  // namespace lockstep
