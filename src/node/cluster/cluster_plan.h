// ClusterPlanner: implements a cluster's PlanFunction (cluster/brain/plan_function.h). It reads and
// caches the facts about a model on its own threads, and there places the model on the offered
// nodes in as many groups as requested. plan() belongs to the Brain's thread, the rest to any.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/brain/plan_function.h"
#include "model/options/kv_kind.h"
#include "model/options/run_limits.h"
#include "node/cluster/planned_model.h"
#include "node/worker/disk_thread.h"
#include "planner/facts/links.h"

namespace lockstep {

inline constexpr int kPlannedStreamsMax = 4096;

// The limits that a rank is planned with and so must be started with: the promised context (see
// context_for()), one group's part of the promised streams, and how keys and values are stored.
struct PlannedLimits {
  int context = 0;
  int streams = kSequencesDefault;
  std::optional<KvKind> kv{};  // not set: see kv_of()
};
// How keys and values are to be stored; nullopt: nothing was promised. kInvalidArgument for a kind
// that this program does not know.
Result<std::optional<KvKind>> promised_kv(const ModelPromises& promises);
// kInvalidArgument for promises that the model cannot keep.
Result<PlannedLimits> planned_limits(const ModelConfig& config, const ModelPromises& promises);

// As many groups as fit, `groups` at most, on disjoint nodes: planned together, so that none takes
// what another needs. Each is the best of at most 64 ranks by the promises, one rank per node
// unless more ranks than nodes are requested. kExhausted says what even one group lacks, and where.
// Pure; takes some ten milliseconds, more for many nodes.
Result<std::vector<RankPlan>> plan_groups(const DesiredEntry& entry, const PlannedModel& model,
                                          size_t groups, std::span<const NodeOffer> offers);

// The network between two nodes, or within one, as a plan assumes it.
LinkFigures link_between(const NodeOffer& a, const NodeOffer& b);

class ClusterPlanner {
 public:
  // From DesiredEntry::path or draft_model to the argument of open_model() on this machine; runs on
  // the planner's threads, may use the disk, and may outlive this object.
  using Resolve = std::function<Result<std::string>(const std::string& path)>;

  explicit ClusterPlanner(Resolve resolve) : resolve_(std::move(resolve)) {}

  // Called on a planner's thread when a plan is made, and when a model's facts are known or have
  // changed: the time for Brain::plan_again(). Must not wait. A new call replaces the old one.
  void set_on_facts(std::function<void()> call);

  // kTimeout while the model's facts are being read or the plan is being made; the same call has
  // the answer afterwards. Round trips that have changed meanwhile do not matter.
  Result<std::vector<RankPlan>> plan(const DesiredEntry& entry, size_t groups,
                                     std::span<const NodeOffer> offers);
  // plan() as a function, which must not outlive this.
  PlanFunction function();

 private:
  using Clock = std::chrono::steady_clock;
  using Facts = Result<std::shared_ptr<const PlannedModel>>;
  struct Reading {  // of the files of a model and of what guesses its tokens
    Facts facts;
    uint64_t files = 0;  // hash of their names, sizes and times
  };
  struct Known {
    std::optional<Reading> reading;
    bool is_reading = false;
    Clock::time_point read_at;
    Clock::time_point used_at;
  };

  // A plan that is being made or was made, and what it was made from.
  struct Plan {
    std::string inputs;
    std::shared_ptr<const PlannedModel> facts;
    std::optional<Result<std::vector<RankPlan>>> result;
  };

  Facts facts_of(const DesiredEntry& entry);
  void finish_plan(const std::string& inputs, const std::shared_ptr<const PlannedModel>& facts,
                   Result<std::vector<RankPlan>> result);
  void start_reading(const PlannedSources& sources, const std::optional<Reading>& before);
  void finish_reading(const PlannedSources& sources, std::optional<Reading> reading);
  void make_room(const PlannedSources& keep);
  static std::optional<Reading> read(const Resolve& resolve, const PlannedSources& sources,
                                     const std::optional<Reading>& before);

  const Resolve resolve_;
  std::mutex mutex_;  // guards what follows, except the threads
  std::function<void()> on_facts_;
  std::map<PlannedSources, Known> known_;  // as entries name them
  std::deque<Plan> plans_;                 // the oldest first; kPlansKeptMax
  DiskThread planning_{1};
  // One thread per model kept: each has at most one read in flight, so a hanging one blocks no
  // other.
  DiskThread disk_{kDesiredLiveMax};
};

}  // namespace lockstep
