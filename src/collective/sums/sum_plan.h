// SumPlan: which rank sends which partial sums to which, and what each rank adds, so that every
// rank ends with the root of the sum tree. Made beforehand, for all ranks at once, from shares,
// links and an algorithm; every rank computes the same plan. Only siblings of the tree are ever
// added, so the bits do not depend on the algorithm. For collective/ only.
#pragma once

#include <optional>
#include <vector>

#include "collective/plan/algorithm.h"
#include "collective/plan/leaf_shares.h"
#include "collective/sums/exchange.h"

namespace lockstep {

struct SumPlan {
  // A message as the cost model sees it; messages of a round do not wait for each other.
  struct Hop {
    int round = 0;
    int from = 0;
    int to = 0;
    int slot_count = 0;
  };

  static constexpr int kMessageSlotsMax = 8;  // so that a piece of each fits in a frame

  // The vector is cut into chunks of about the same length; a slot's part is its chunk.
  int chunk_count = 1;
  int message_slots_max = 1;
  int round_count = 0;
  std::vector<Hop> hops;                // by round
  std::vector<int> adds;                // (ranks) the number of chunks each adds
  std::vector<ExchangePlan> exchanges;  // (ranks) given slots: for each chunk the rank's own nodes
};

// The links must allow the algorithm, which must not be kAuto.
SumPlan plan_sum(const LeafShares& shares, const LinkGraph& graph, SumAlgorithm algorithm);

// Builds a plan round by round, tracking what every rank holds.
class SumPlanner {
 public:
  SumPlanner(const LeafShares& shares, int chunk_count);

  // Complete subtrees of a chunk that a rank holds and cannot add any further.
  struct Held {
    TreeNode node;
    int slot = 0;
  };
  const std::vector<Held>& held(int rank, int chunk) const;
  bool knows(int rank, int chunk, TreeNode node) const;  // this sum or one that includes it
  bool has_root(int rank, int chunk) const;
  bool is_complete() const;  // every rank has the root of every chunk

  // Sends `slots` of `from` in one message; nothing if empty.
  void send(int from, int to, std::vector<int> slots);
  // Everything that `from` holds of these chunks.
  void send_all(int from, int to, const std::vector<int>& chunks);
  // Delivers and adds what was sent.
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
