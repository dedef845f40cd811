// Coordinator: makes the nodes run what the users want. It compares the two whenever something
// changes and gives orders for one step: end what is unwanted, broken or surplus; where a group of
// a wanted model is missing, plan, reserve memory on the nodes, start. A model has as many groups
// as promised (ModelPromises::replicas), or as many as fit; each is a separate placement, and no
// node holds parts of two. Everything except attempts in flight is read from the nodes' reports, so
// a new coordinator simply continues. It leaves whole placements alone, except duplicates and those
// whose promises have changed. Used by Brain on the node that coordinates. Pure; one thread.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/brain/found_placements.h"
#include "cluster/brain/membership.h"
#include "cluster/brain/messages.h"
#include "cluster/brain/plan_function.h"
#include "cluster/state/desired_state.h"

namespace lockstep {

struct CoordinatorOptions {
  int64_t boot_ms = 3'000;      // after the start, without plans: other nodes may exist
  int64_t settle_ms = 1'000;    // the same after a node was gained
  int64_t agree_ms = 2'000;     // longest wait until nodes follow and agree on the desired state
  int64_t attempt_ms = 10'000;  // to reserve and start; less than kReservationMs
  int64_t resend_ms = 500;
  int64_t replan_ms = 3'000;  // of a model that did not fit, if nothing has changed
  int64_t retry_ms = 1'000;   // after a failure; doubled by each further one
  int64_t retry_max_ms = 60'000;
  int64_t steady_ms = 60'000;  // ready for this long: failures are forgotten
  int64_t hold_ms = 30'000;    // no other model gets the memory of one that was ready before
};

struct ClusterOrder {
  NodeId to;
  ClusterMessage message;
};

class Coordinator {
 public:
  Coordinator(const NodeId& self, int64_t incarnation, const CoordinatorOptions& options,
              PlanFunction plan, int64_t now_ms);

  // One step; `nodes` are the alive ones of `members`, and this node.
  std::vector<ClusterOrder> reconcile(int64_t now_ms, std::span<const NodeView> nodes,
                                      const DesiredState& desired, const Membership& members);
  void replied(const NodeId& from, const ReserveReply& reply);
  // The inputs of the plan function have changed: models that did not fit are planned at once.
  void plan_again();
  // Another node coordinates: attempts in flight are its business now.
  void resign();

  const std::vector<ModelProgress>& progress() const { return progress_; }

 private:
  struct Attempt {
    PlacementEpoch epoch;
    DesiredEntry entry;
    RankPlan plan;
    std::set<NodeId> granted;
    bool is_starting = false;  // all granted
    int64_t deadline_ms = 0;
    int64_t sent_ms = 0;
    std::string refused;         // why a node refused
    bool was_overtaken = false;  // by a higher epoch
  };
  struct Book {                     // of one model
    std::vector<Attempt> attempts;  // at most one for each missing group
    PlacementEpoch highest;         // seen anywhere
    int failures = 0;
    int64_t retry_at_ms = 0;
    std::string failure;              // the last one's reason
    std::set<PlacementEpoch> failed;  // of the failed ones, those still reported
    std::string refusal;              // why it does not fit
    bool is_awaited = false;          // the plan's inputs are being fetched: no refusal
    int64_t plan_at_ms = 0;
    int64_t planned_for = 0;                    // the offers of that plan
    std::map<PlacementEpoch, int64_t> forming;  // by another coordinator; since when
    int64_t ready_ms = -1;                      // since when all groups are ready
    std::map<NodeId, int64_t> held_bytes;       // by its groups when all were ready last
    int64_t held_until_ms = 0;
    std::map<NodeId, int64_t> stopped_ms;  // when a node was last ordered to stop
  };
  struct Round {
    int64_t now_ms;
    std::span<const NodeView> nodes;
    const DesiredState& desired;
    const Membership& members;
    FoundPlacements found;
    bool is_settled;
    std::vector<ClusterOrder> orders;
  };

  bool is_settled(int64_t now_ms, std::span<const NodeView> nodes, int64_t gained_ms);
  using Kept = std::vector<const FoundPlacement*>;
  void step(Round& round, std::string_view model, Book& book, const DesiredEntry* entry);
  void form_missing(Round& round, Book& book, const DesiredEntry& entry,
                    const std::vector<FoundPlacement>& found, size_t kept);
  Kept keep_best(Round& round, Book& book, const std::vector<FoundPlacement>& found,
                 const DesiredEntry& entry);
  void note_readiness(const Round& round, Book& book, const Kept& kept,
                      const DesiredEntry& entry) const;
  // Memory of a node that a model which is being placed again has not taken yet, so that no new
  // model takes it meanwhile.
  int64_t held_for(const Round& round, std::string_view model, const Book& book,
                   const NodeView& node) const;
  bool may_form(const Round& round, Book& book, const FoundPlacement& placement) const;
  void note_failure(const Round& round, Book& book, const FoundPlacement& placement) const;
  void stop(Round& round, Book& book, const FoundPlacement& placement) const;
  void plan(Round& round, Book& book, const DesiredEntry& entry, size_t kept);
  Result<std::vector<RankPlan>> choose(const Round& round, const DesiredEntry& entry, size_t groups,
                                       const std::vector<NodeOffer>& offers,
                                       const std::vector<NodeOffer>& spares) const;
  Result<std::vector<RankPlan>> choose_pinned(const Round& round, const DesiredEntry& entry,
                                              size_t groups,
                                              const std::vector<NodeOffer>& all) const;
  std::vector<NodeOffer> offers(const Round& round, std::string_view model, bool with_spares) const;
  void begin(Round& round, Book& book, const DesiredEntry& entry, RankPlan plan);
  bool advance(Round& round, Book& book, Attempt& attempt) const;
  void send_step(Round& round, Attempt& attempt, const std::set<NodeId>& started) const;
  void abort(Round& round, Book& book, const Attempt& attempt, const std::string& why,
             bool counts) const;
  void back_off(int64_t now_ms, Book& book, const std::string& why) const;
  void tell(std::string_view model, ModelPhase phase, const PlacementEpoch& epoch,
            std::string_view sentence);

  NodeId self_;
  int64_t incarnation_;
  CoordinatorOptions options_;
  PlanFunction plan_;
  int64_t boot_ms_;
  int64_t last_counter_ = 0;  // of the epochs made in this run: none is made twice
  int64_t disagree_ms_ = -1;  // since when nodes disagree
  std::map<std::string, Book, std::less<>> books_;  // by model, desired or reported
  std::vector<ModelProgress> progress_;
};

}  // namespace lockstep
