// ClusterPlanner: the planner behind a cluster's PlanFunction (cluster/plan_function.h). It reads
// what the planner must know of a model on a thread of its own, keeps it, and places the model on
// what the nodes offer in as many groups as are asked for. plan() belongs to the Brain's thread,
// the rest to any.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/plan_function.h"
#include "node/disk_thread.h"
#include "planner/model_facts.h"

namespace lockstep {

inline constexpr int kPlannedStreams = 8;  // where a promise has none: EngineOptions::sequences_max
inline constexpr int kPlannedStreamsMax = 4096;

// What a rank is counted with, and so must be started with: the promised context, or 8192 positions
// or the model's where that is less; and of the promised streams those of one group.
struct PlannedLimits {
  int context = 0;
  int streams = kPlannedStreams;
};
// kInvalidArgument for promises that the model cannot keep.
Result<PlannedLimits> planned_limits(const ModelConfig& config, const ModelPromises& promises);

// As many groups as fit, `groups` at most, on nodes of their own: planned together, so that none
// takes what another needs. Each is the best of at most 64 ranks by the promises; one rank on each
// node, unless more are asked for than there are nodes. kExhausted says what even one lacks where.
// Pure; some ten milliseconds.
Result<std::vector<RankPlan>> plan_groups(const DesiredEntry& entry, const ModelFacts& facts,
                                          size_t groups, std::span<const NodeOffer> offers);

class ClusterPlanner {
 public:
  // From a DesiredEntry's path to what open_model() takes on this machine; runs on the planner's
  // thread, may use the disk, and may outlive this object.
  using Resolve = std::function<Result<std::string>(const std::string& path)>;

  explicit ClusterPlanner(Resolve resolve) : resolve_(std::move(resolve)) {}

  // Called on the planner's thread when a model's facts are there or have changed, which is the
  // time for Brain::plan_again(). Must not wait. Once another one is set, it is not called any
  // more.
  void set_on_facts(std::function<void()> call);

  // kTimeout at the first call for a model: what is needed is still read.
  Result<std::vector<RankPlan>> plan(const DesiredEntry& entry, size_t groups,
                                     std::span<const NodeOffer> offers);
  // plan() as a function, which must not outlive this.
  PlanFunction function();

 private:
  using Clock = std::chrono::steady_clock;
  using Facts = Result<std::shared_ptr<const ModelFacts>>;
  struct Reading {  // of a model's files
    Facts facts;
    uint64_t files = 0;  // their names, sizes and times, as one number
  };
  struct Known {
    std::optional<Reading> reading;
    bool is_reading = false;
    Clock::time_point read_at;
    Clock::time_point used_at;
  };

  Facts facts_of(const DesiredEntry& entry);
  void start_reading(const std::string& path, const std::optional<Reading>& before);
  void finish_reading(const std::string& path, std::optional<Reading> reading);
  void make_room(const std::string& keep);
  static std::optional<Reading> read(const Resolve& resolve, const std::string& path,
                                     const std::optional<Reading>& before);

  const Resolve resolve_;
  std::mutex mutex_;  // of what follows, except the thread
  std::function<void()> on_facts_;
  std::map<std::string, Known> known_;  // by path
  DiskThread disk_;
};

}  // namespace lockstep
