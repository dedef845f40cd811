// SumPlan: who sends which partial sums to whom, and what each rank adds, so that every rank ends
// with the root of the sum tree. Made beforehand, for all ranks at once, from shares, links and an
// algorithm; every rank comes to the same plan. Only siblings of the tree are ever added, so the
// bits do not depend on the algorithm. For collective/ only.
#pragma once

#include <optional>
#include <vector>

#include "collective/algorithm.h"
#include "collective/exchange.h"
#include "collective/leaf_shares.h"

namespace lockstep {

struct SumPlan {
  // What the cost model needs of a message; messages of a round do not wait for each other.
  struct Hop {
    int round = 0;
    int from = 0;
    int to = 0;
    int slot_count = 0;
  };

  static constexpr int kMessageSlotsMax = 8;  // so that a piece of each has room in a frame

  // The vector is cut into chunks of about the same length; a slot's part is its chunk.
  int chunk_count = 1;
  int message_slots_max = 1;
  int round_count = 0;
  std::vector<Hop> hops;                // by round
  std::vector<int> adds;                // (ranks) how many chunks each adds
  std::vector<ExchangePlan> exchanges;  // (ranks) given slots: for each chunk the rank's own nodes
};

// The links must allow the algorithm, which is not kAuto.
SumPlan plan_sum(const LeafShares& shares, const LinkGraph& graph, SumAlgorithm algorithm);

// Builds a plan round by round, by keeping book of what every rank holds.
class SumPlanner {
 public:
  SumPlanner(const LeafShares& shares, int chunk_count);

  // What a rank holds of a chunk: complete subtrees that cannot be added any further.
  struct Held {
    TreeNode node;
    int slot = 0;
  };
  const std::vector<Held>& held(int rank, int chunk) const;
  bool knows(int rank, int chunk, TreeNode node) const;  // this sum or one that it is part of
  bool has_root(int rank, int chunk) const;
  bool is_complete() const;  // everybody has the root of everything

  // In one message: `slots` of `from`; nothing if there are none.
  void send(int from, int to, std::vector<int> slots);
  // All that `from` holds of these chunks.
  void send_all(int from, int to, const std::vector<int>& chunks);
  // What was sent arrives and is added.
  void end_round();

  SumPlan take() { return std::move(plan_); }

 private:
  struct Delivery {
    int from = 0;
    int to = 0;
    std::vector<int> slots;  // of `from`
  };

  std::vector<Held>& holdings(int rank, int chunk);
  int new_slot(int rank, int chunk, TreeNode node);
  void hold(int rank, int chunk, Held fresh);

  const LeafShares& shares_;
  SumPlan plan_;
  std::vector<std::vector<Held>> held_;  // (ranks, chunks)
  std::vector<Delivery> deliveries_;     // of this round
};

}  // namespace lockstep
