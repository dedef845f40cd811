// GroupPlacer: the best way to put one copy of a model on given machines in given stages: shares by
// speed, as far as memory allows, and the resulting speed. Used by planner/plan.cc for the duration
// of one plan; one thread.
#pragma once

#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "base/result.h"
#include "planner/facts/cluster_facts.h"
#include "planner/placement.h"
#include "planner/predict.h"
#include "planner/rank_load.h"
#include "planner/shares.h"

namespace lockstep {

// Published shares of the first guesses are 0.6 to 0.85; later ones are right less often.
inline constexpr double kDraftRight = 0.65;

struct PlanRequest {
  LoadLimits limits;
  int prompt_tokens = 512;           // for which the time to the first token is predicted
  bool is_one_group = false;         // no replicas
  double draft_right = kDraftRight;  // of the guesses of the draft layer or the draft model
  // Guesses in the place of the layer, in each group; null: none.
  const ModelFacts* draft_model = nullptr;
};

struct GroupPlan {
  PlacedGroup group;
  size_t misfits = 0;          // ranks that lack memory
  uint64_t lacking_bytes = 0;  // of all of them
  int streams = 1;
  StepTime token;              // of one stream at the whole context
  double decode_tok_s = 0;     // of one stream at the whole context
  double short_tok_s = 0;      // of one stream at its beginning
  double total_tok_s = 0;      // of all streams together, at the whole context
  double draft_tok_s = 0;      // of one stream there, with guesses; 0: nothing guesses
  double first_token_s = 0;    // 0: not known
  double joule_per_token = 0;  // 0: not known
};

class GroupPlacer {
 public:
  // All must outlive it.
  GroupPlacer(const ModelFacts& facts, const ClusterFacts& cluster, const PlanRequest& request);

  // `stages` divides the number of machines; the first machines are the first stage. Empty if the
  // machines cannot reach each other or there are fewer layers than stages. Errors are those of
  // RankCounter.
  Result<std::optional<GroupPlan>> place(std::vector<size_t> machines, int stages, int streams);

 private:
  struct Attempt;
  using Key = std::tuple<std::vector<size_t>, int, int>;  // machines by kind, stages, streams

  Result<std::optional<GroupPlan>> search(const std::vector<size_t>& machines, int stages,
                                          int streams);
  Result<GroupPlan> attempt(Attempt& attempt);
  std::vector<double> shares_of(const Attempt& attempt) const;
  Status place_stage(Attempt& attempt, size_t stage, Range layers, GroupPlan& plan);
  // The draft model, which is cut over the ranks of the first stage.
  Status place_draft_model(Attempt& attempt, GroupPlan& plan);
  Result<Cut> cut_of(const ModelFacts& facts, const Attempt& attempt, size_t stage,
                     StageView& view) const;
  void limit_shares(const GroupPlan& plan, Attempt& attempt) const;
  void predict(const Attempt& attempt, GroupPlan& plan) const;
  double drafted_tok_s(const Attempt& attempt, const GroupView& view) const;

  const ModelFacts& facts_;
  const ClusterFacts& cluster_;
  const PlanRequest& request_;
  RankCounter counter_;
  std::optional<RankCounter> draft_counter_;  // of the draft model
  std::vector<size_t> kinds_;                 // (machines): the first identical machine
  std::optional<LeafDealer> dealer_;  // of the dimension that determines the rounding of shares
  double whole_bytes_ = 0;            // of the model on one rank
  std::map<Key, std::optional<GroupPlan>> known_;
};

}  // namespace lockstep
