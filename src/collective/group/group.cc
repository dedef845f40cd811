#include "collective/group/group.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/check.h"
#include "collective/sums/peer_wait.h"

namespace lockstep {

Group::Group(Options options)
    : options_(std::move(options)), adder_(options_.kernels ? options_.kernels->add : nullptr) {
  const size_t size = options_.links.size();
  LOCKSTEP_CHECK(options_.rank >= 0 && static_cast<size_t>(options_.rank) < size);
  if (options_.graph.size() == 0) options_.graph = LinkGraph::of(Topology::kMesh, this->size());
  LOCKSTEP_CHECK(static_cast<size_t>(options_.graph.size()) == size);
  LOCKSTEP_CHECK(options_.graph.is_connected());
  LOCKSTEP_CHECK(is_possible(options_.algorithm, options_.graph));
  LOCKSTEP_CHECK(options_.piece_bytes >= kPieceBytesMin);
  for (size_t rank = 0; rank < size; ++rank) {
    const Link* link = options_.links[rank].get();
    LOCKSTEP_CHECK((link != nullptr) == options_.graph.has(this->rank(), static_cast<int>(rank)));
    LOCKSTEP_CHECK(!link || link->frame_bytes_max() >= options_.piece_bytes);
  }
  plans_ = std::make_unique<GroupPlans>(options_, options_.graph);
  posted_.resize(size);
  peeked_.resize(size);
}

Group::Options Group::release() && {
  return std::move(options_);
}

Status Group::all_gather(std::span<const std::span<std::byte>> parts) {
  if (!state_.ok()) return state_;
  count_exchange();
  return finish(move_parts(plans_->all_gather(), parts, -1));
}

Status Group::gather(int root, std::span<const std::span<std::byte>> parts) {
  LOCKSTEP_CHECK(root >= 0 && root < size());
  if (!state_.ok()) return state_;
  count_exchange();
  return finish(move_parts(plans_->gather(root), parts, root));
}

// All ranks gather if `gathering_root` is -1.
Status Group::move_parts(const ExchangePlan& plan, std::span<const std::span<std::byte>> parts,
                         int gathering_root) {
  LOCKSTEP_CHECK(!reduction_);
  LOCKSTEP_CHECK(parts.size() == static_cast<size_t>(size()));
  memory_.resize(std::max(memory_.size(), parts.size()));
  lengths_.resize(std::max(lengths_.size(), parts.size()));
  for (int source = 0; source < size(); ++source) {
    const auto s = static_cast<size_t>(source);
    const bool is_carried = gathering_root < 0 || carries(gathering_root, source);
    memory_[s] = parts[s].data();
    lengths_[s] = is_carried ? parts[s].size() : 0;
  }
  return exchange_.run(options_, plan,
                       {.memory = std::span(memory_).first(parts.size()),
                        .lengths = std::span(lengths_).first(parts.size()),
                        .piece_elements = options_.piece_bytes,
                        .window_pieces = window_pieces()});
}

SumAlgorithm Group::algorithm(const LeafShares& shares, size_t count) {
  return plans_->sums(shares).algorithm(count);
}

Status Group::all_reduce(const LeafShares& shares, std::span<const float> own, std::span<float> sum,
                         int rows) {
  TRY(begin_sum(shares, own, sum, rows));
  return finish_sum();
}

Status Group::begin_sum(const LeafShares& shares, std::span<const float> own, std::span<float> sum,
                        int rows) {
  LOCKSTEP_CHECK(shares.rank_count() == size());
  LOCKSTEP_CHECK(own.size() == shares.nodes(rank()).size() * sum.size());
  TRY(finish_sum());
  if (sum.empty()) return Ok{};
  count_exchange();
  const bool is_prompt = rows >= options_.wire_rows_min && size() > 1;
  const Wire wire = is_prompt ? options_.wire : Wire::kF32;
  reduction_ = Reduction{.shares = &shares,
                         .own = own,
                         .sum = sum,
                         .plan = plan_of(shares, sum.size(), wire),
                         .wire = wire};
  if (reduction_->plan) {
    begin_by_plan(*reduction_);
  } else {
    begin_in_one_hop(*reduction_);
  }
  return poll_sum();
}

// Null: in one hop.
const GroupPlans::Sum* Group::plan_of(const LeafShares& shares, size_t count, Wire wire) {
  // Two ranks have only one way, so they skip the search for a plan.
  const bool has_choice = size() > 2 || options_.algorithm > SumAlgorithm::kMesh;
  if (wire == Wire::kF32 && !has_choice) return nullptr;
  const GroupPlans::Sums& sums = plans_->sums(shares);
  const SumAlgorithm algorithm = sums.algorithm(count);
  if (wire == Wire::kF32 && algorithm == SumAlgorithm::kMesh) return nullptr;
  return &sums.plan(algorithm);
}

Status Group::poll_sum() {
  if (!state_.ok() || !reduction_) return state_;
  return finish(reduction_->plan ? exchange_.poll(options_) : poll_in_one_hop(*reduction_));
}

Status Group::finish_sum() {
  if (!state_.ok() || !reduction_) return state_;
  Status status = reduction_->plan ? finish_by_plan(*reduction_) : finish_in_one_hop(*reduction_);
  reduction_.reset();
  return finish(std::move(status));
}

Status Group::flush() {
  PeerWait wait(options_);
  for (int peer = 0; peer < size(); ++peer) {
    if (!options_.links[static_cast<size_t>(peer)]) continue;
    while (!link(peer).flush()) TRY(wait.pause(0, peer_bit(peer)));
  }
  return Ok{};
}

Status Group::finish(Status status) {
  if (!status.ok()) state_ = status;
  return status;
}

}  // namespace lockstep
