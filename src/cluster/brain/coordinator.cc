#include "cluster/brain/coordinator.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "base/hash.h"
#include "cluster/sentences.h"

namespace lockstep {
namespace {

constexpr int kFailuresMax = 16;  // that count for the back-off

bool is_wanted(const DesiredEntry& entry, std::span<const NodeView> nodes) {
  if (!entry.wanted || entry.promises.idle_unload_s == 0) return entry.wanted;
  for (const NodeView& node : nodes) {
    for (const ModelUse& use : node.beat->uses) {
      const bool is_recent = use.age_ms / 1000 < entry.promises.idle_unload_s;
      if (use.model == entry.name && is_recent) return true;
    }
  }
  return false;
}

// The oldest requests are placed first.
std::vector<const DesiredEntry*> by_age(const DesiredState& desired) {
  std::vector<const DesiredEntry*> entries;
  for (const auto& [name, entry] : desired.entries()) entries.push_back(&entry);
  std::sort(entries.begin(), entries.end(),
            [](const DesiredEntry* a, const DesiredEntry* b) { return a->stamp < b->stamp; });
  return entries;
}

std::set<NodeId> nodes_of(const std::vector<RankPart>& ranks) {
  std::set<NodeId> ids;
  for (const RankPart& rank : ranks) ids.insert(rank.node);
  return ids;
}

bool holds_part(const NodeView& node, std::string_view model) {
  return std::any_of(node.beat->parts.begin(), node.beat->parts.end(),
                     [&](const PlacementShare& part) { return part.model == model; });
}

int64_t offers_key(const std::vector<NodeOffer>& offers) {
  Fnv key;
  for (const NodeOffer& offer : offers) {
    key.add(std::hash<NodeId>()(offer.node)).add(static_cast<uint64_t>(offer.free_bytes));
  }
  return static_cast<int64_t>(key.value());
}

bool is_awaited(const Result<std::vector<RankPlan>>& plans) {
  return !plans.ok() && plans.error().code == ErrorCode::kTimeout;
}

}  // namespace

Coordinator::Coordinator(const NodeId& self, int64_t incarnation, const CoordinatorOptions& options,
                         PlanFunction plan, int64_t now_ms)
    : self_(self),
      incarnation_(incarnation),
      options_(options),
      plan_(std::move(plan)),
      boot_ms_(now_ms) {}

std::vector<ClusterOrder> Coordinator::reconcile(int64_t now_ms, std::span<const NodeView> nodes,
                                                 const DesiredState& desired,
                                                 const Membership& members) {
  Round round{.now_ms = now_ms,
              .nodes = nodes,
              .desired = desired,
              .members = members,
              .found = find_placements(nodes, members),
              .is_settled = is_settled(now_ms, nodes, members.gained_ms()),
              .orders = {}};
  progress_.clear();
  for (const auto& [model, placements] : round.found) {
    if (desired.find(model) == nullptr) step(round, model, books_[std::string(model)], nullptr);
  }
  for (const DesiredEntry* entry : by_age(desired)) {
    const bool is_known = books_.contains(entry->name) || round.found.contains(entry->name);
    if (entry->wanted || is_known) step(round, entry->name, books_[entry->name], entry);
  }
  std::erase_if(books_, [&](const auto& item) {
    const DesiredEntry* entry = desired.find(item.first);
    return (entry == nullptr || !entry->wanted) && !round.found.contains(item.first);
  });
  return std::move(round.orders);
}

void Coordinator::replied(const NodeId& from, const ReserveReply& reply) {
  const auto found = books_.find(reply.model);
  if (found == books_.end()) return;
  Book& book = found->second;
  book.highest = std::max(book.highest, reply.highest);
  const auto attempt = std::find_if(book.attempts.begin(), book.attempts.end(),
                                    [&](const Attempt& one) { return one.epoch == reply.epoch; });
  if (attempt == book.attempts.end()) return;
  if (reply.is_granted) {
    attempt->granted.insert(from);
  } else if (!attempt->granted.contains(from)) {
    attempt->refused = reply.reason;
    attempt->was_overtaken = reply.highest > reply.epoch;
  }
}

void Coordinator::plan_again() {
  for (auto& [model, book] : books_) book.plan_at_ms = 0;
}

void Coordinator::resign() {
  books_.clear();
  progress_.clear();
  disagree_ms_ = -1;
}

// Nodes that have just met first exchange what they run and what they know to be desired; planning
// earlier would load models that are already loaded, or were unloaded.
bool Coordinator::is_settled(int64_t now_ms, std::span<const NodeView> nodes, int64_t gained_ms) {
  const bool agree = std::all_of(nodes.begin(), nodes.end(), [&](const NodeView& node) {
    return node.is_follower && node.beat->desired_digest == nodes.front().beat->desired_digest;
  });
  if (agree) {
    disagree_ms_ = -1;
  } else if (disagree_ms_ < 0) {
    disagree_ms_ = now_ms;
  }
  if (now_ms - boot_ms_ < options_.boot_ms) return false;
  if (gained_ms > 0 && now_ms - gained_ms < options_.settle_ms) return false;
  return agree || now_ms - disagree_ms_ >= options_.agree_ms;
}

void Coordinator::step(Round& round, std::string_view model, Book& book,
                       const DesiredEntry* entry) {
  const auto item = round.found.find(model);
  static const std::vector<FoundPlacement> kNone;
  const auto& found = item == round.found.end() ? kNone : item->second;
  for (const FoundPlacement& placement : found) {
    book.highest = std::max(book.highest, placement.epoch);
  }
  const auto is_found = [&](const PlacementEpoch& epoch) {
    return std::any_of(found.begin(), found.end(),
                       [&](const FoundPlacement& placement) { return placement.epoch == epoch; });
  };
  std::erase_if(book.failed, [&](const PlacementEpoch& epoch) { return !is_found(epoch); });
  std::erase_if(book.forming, [&](const auto& one) { return !is_found(one.first); });
  if (entry == nullptr || !is_wanted(*entry, round.nodes)) {
    for (const Attempt& attempt : book.attempts) {
      abort(round, book, attempt, "it is no longer wanted", false);
    }
    book.attempts.clear();
    book.held_bytes.clear();
    for (const FoundPlacement& placement : found) stop(round, book, placement);
    if (!found.empty()) tell(model, ModelPhase::kUnloading, found.front().epoch, "");
    return;
  }
  for (auto attempt = book.attempts.begin(); attempt != book.attempts.end();) {
    attempt = advance(round, book, *attempt) ? attempt + 1 : book.attempts.erase(attempt);
  }
  const Kept kept = keep_best(round, book, found, *entry);
  note_readiness(round, book, kept, *entry);
  for (const FoundPlacement* placement : kept) {
    const bool is_ready = placement->health == PlacementHealth::kReady;
    tell(model, is_ready ? ModelPhase::kReady : ModelPhase::kLoading, placement->epoch, "");
  }
  form_missing(round, book, *entry, found, kept.size());
}

// Plans one after the other, so that groups are planned together, on what the others leave.
void Coordinator::form_missing(Round& round, Book& book, const DesiredEntry& entry,
                               const std::vector<FoundPlacement>& found, size_t kept) {
  const auto groups = static_cast<size_t>(entry.promises.replicas);
  while (!book.attempts.empty() && kept + book.attempts.size() > groups) {
    abort(round, book, book.attempts.back(), "there are enough groups", false);
    book.attempts.pop_back();
  }
  for (const Attempt& attempt : book.attempts) {
    tell(entry.name, ModelPhase::kPlacing, attempt.epoch, "");
  }
  if (!book.attempts.empty() || kept == groups) return;
  if (found.size() > kept) {
    return tell(entry.name, ModelPhase::kWaiting, found.front().epoch,
                "its old parts must end first");
  }
  plan(round, book, entry, kept);
}

// The placements that stay, oldest first, and orders to end the others. Nodes that obey another
// coordinator are left to it.
Coordinator::Kept Coordinator::keep_best(Round& round, Book& book,
                                         const std::vector<FoundPlacement>& found,
                                         const DesiredEntry& entry) {
  const int64_t key = found.empty() ? 0 : placement_key(entry);
  const auto is_attempt = [&](const FoundPlacement& placement) {
    return std::any_of(book.attempts.begin(), book.attempts.end(),
                       [&](const Attempt& attempt) { return attempt.epoch == placement.epoch; });
  };
  Kept kept;
  for (const FoundPlacement& placement : found) {
    const bool may_stay = placement.is_whole() && placement.parts.front().part->key == key;
    if (may_stay && !is_attempt(placement)) kept.push_back(&placement);
  }
  std::sort(kept.begin(), kept.end(), [](const FoundPlacement* a, const FoundPlacement* b) {
    return std::tuple(a->health != PlacementHealth::kReady, b->epoch) <
           std::tuple(b->health != PlacementHealth::kReady, a->epoch);
  });
  kept.resize(std::min(kept.size(), static_cast<size_t>(entry.promises.replicas)));
  std::sort(kept.begin(), kept.end(),
            [](const FoundPlacement* a, const FoundPlacement* b) { return a->epoch < b->epoch; });
  for (const FoundPlacement& placement : found) {
    const bool stays = std::find(kept.begin(), kept.end(), &placement) != kept.end();
    if (stays || is_attempt(placement)) continue;
    if (placement.health == PlacementHealth::kForming && may_form(round, book, placement)) continue;
    if (placement.health == PlacementHealth::kFailed) note_failure(round, book, placement);
    stop(round, book, placement);
  }
  return kept;
}

// Failures are forgotten once all groups have been ready for a while.
void Coordinator::note_readiness(const Round& round, Book& book, const Kept& kept,
                                 const DesiredEntry& entry) const {
  const bool is_ready = kept.size() == static_cast<size_t>(entry.promises.replicas) &&
                        std::all_of(kept.begin(), kept.end(), [](const FoundPlacement* placement) {
                          return placement->health == PlacementHealth::kReady;
                        });
  if (!is_ready || book.ready_ms < 0) book.ready_ms = is_ready ? round.now_ms : -1;
  if (!is_ready) return;
  if (round.now_ms - book.ready_ms >= options_.steady_ms) book.failures = 0;
  book.held_bytes.clear();
  book.held_until_ms = round.now_ms + options_.hold_ms;
  for (const FoundPlacement* placement : kept) {
    for (const PartView& held : placement->parts) {
      book.held_bytes[held.node->id] += held.part->bytes;
    }
  }
}

int64_t Coordinator::held_for(const Round& round, std::string_view model, const Book& book,
                              const NodeView& node) const {
  const auto held = book.held_bytes.find(node.id);
  if (held == book.held_bytes.end() || round.now_ms >= book.held_until_ms) return 0;
  int64_t bytes = held->second;
  for (const PlacementShare& part : node.beat->parts) {
    if (part.model == model) bytes -= part.bytes;
  }
  for (const Attempt& attempt : book.attempts) bytes -= bytes_on(attempt.plan.ranks, node.id);
  return std::max<int64_t>(0, bytes);
}

// A placement that another coordinator was about to start may continue for a while; shorter if all
// its nodes follow this one, since then no other can start it.
bool Coordinator::may_form(const Round& round, Book& book, const FoundPlacement& placement) const {
  const int64_t since_ms = book.forming.try_emplace(placement.epoch, round.now_ms).first->second;
  const bool is_ours = std::all_of(placement.parts.begin(), placement.parts.end(),
                                   [](const PartView& held) { return held.node->is_follower; });
  return round.now_ms - since_ms < (is_ours ? 2 * options_.resend_ms : options_.attempt_ms);
}

void Coordinator::note_failure(const Round& round, Book& book,
                               const FoundPlacement& placement) const {
  if (!book.failed.insert(placement.epoch).second) return;
  back_off(round.now_ms, book, placement.why);
}

void Coordinator::stop(Round& round, Book& book, const FoundPlacement& placement) const {
  for (const PartView& held : placement.parts) {
    if (!held.node->is_follower || held.part->state == PartState::kStopping) continue;
    const auto last = book.stopped_ms.find(held.node->id);
    if (last != book.stopped_ms.end() && round.now_ms - last->second < options_.resend_ms) continue;
    book.stopped_ms[held.node->id] = round.now_ms;
    round.orders.push_back({held.node->id, StopOrder{held.part->model, placement.epoch}});
  }
}

// Plans the missing groups.
void Coordinator::plan(Round& round, Book& book, const DesiredEntry& entry, size_t kept) {
  const auto groups = static_cast<size_t>(entry.promises.replicas);
  const auto wait = [&](std::string_view why) {
    tell(entry.name, ModelPhase::kWaiting, {},
         kept == 0 ? std::string(why)
                   : fmt::format("{} of {} groups are placed; the next one waits: {}", kept, groups,
                                 why));
  };
  if (round.now_ms < book.retry_at_ms) {
    return wait(fmt::format("it starts again in {} s, after: {}",
                            (book.retry_at_ms - round.now_ms + 999) / 1000, book.failure));
  }
  if (!round.is_settled) return wait("the nodes are still telling each other what runs");
  const auto usual = offers(round, entry.name, false);
  const auto all = offers(round, entry.name, true);
  const int64_t key = offers_key(all);
  if (round.now_ms >= book.plan_at_ms || key != book.planned_for) {
    auto chosen = choose(round, entry, groups - kept, usual, all);
    if (chosen.ok()) {
      for (RankPlan& plan : chosen.value()) begin(round, book, entry, std::move(plan));
      return;
    }
    book.refusal = chosen.error().message;
    book.is_awaited = is_awaited(chosen);
    book.plan_at_ms = round.now_ms + options_.replan_ms;
    book.planned_for = key;
  }
  if (!book.is_awaited) return wait(book.refusal);
  tell(entry.name, ModelPhase::kPlacing, {}, book.refusal);
}

// On the pinned nodes, or on all; on spares only if fewer groups fit without them.
Result<std::vector<RankPlan>> Coordinator::choose(const Round& round, const DesiredEntry& entry,
                                                  size_t groups,
                                                  const std::vector<NodeOffer>& usual,
                                                  const std::vector<NodeOffer>& all) const {
  if (!entry.promises.pinned.empty()) return choose_pinned(round, entry, groups, all);
  const auto holders = static_cast<size_t>(
      std::count_if(round.nodes.begin(), round.nodes.end(),
                    [&](const NodeView& node) { return holds_part(node, entry.name); }));
  if (all.empty() && holders > 0) {
    return Error{ErrorCode::kExhausted,
                 fmt::format("{} of {} nodes each hold a group of model '{}'; groups do not share "
                             "nodes, and no other node may be used",
                             holders, round.nodes.size(), entry.name)};
  }
  auto plans = plan_(entry, groups, usual);
  if (is_awaited(plans)) return plans;
  const size_t count = plans.ok() ? plans.value().size() : 0;
  if (count == groups || usual.size() == all.size()) return plans;
  auto more = plan_(entry, groups, all);
  if (is_awaited(more)) return more;
  const bool is_better = count == 0 || (more.ok() && more.value().size() > count);
  return is_better ? std::move(more) : std::move(plans);
}

// A single group waits for all its pinned nodes; several use the pinned nodes available.
Result<std::vector<RankPlan>> Coordinator::choose_pinned(const Round& round,
                                                         const DesiredEntry& entry, size_t groups,
                                                         const std::vector<NodeOffer>& all) const {
  std::vector<NodeOffer> offers;
  std::optional<Error> missing;
  for (const NodeId& id : entry.promises.pinned) {
    const auto offer = std::find_if(all.begin(), all.end(),
                                    [&](const NodeOffer& other) { return other.node == id; });
    const NodeView* node = find_node(round.nodes, id);
    if (offer != all.end()) {
      offers.push_back(*offer);
    } else if ((node == nullptr || !holds_part(*node, entry.name)) && !missing) {
      missing = Error{
          ErrorCode::kPeerLost,
          fmt::format(
              "model '{}' is pinned to node {}, which {}", entry.name, round.members.name_of(id),
              node != nullptr ? "was lost recently and must stay connected for a while first"
                              : "is not connected")};
    }
  }
  if (missing && (entry.promises.replicas == 1 || offers.empty())) return *std::move(missing);
  if (offers.empty()) {
    return Error{ErrorCode::kExhausted,
                 fmt::format("each of the {} nodes that model '{}' is pinned to already holds one "
                             "of its groups, and groups do not share nodes",
                             entry.promises.pinned.size(), entry.name)};
  }
  return plan_(entry, groups, offers);
}

// Memory free by the nodes' reports, minus what attempts in flight are about to take, and what is
// held for other models; only nodes that hold nothing of the model.
std::vector<NodeOffer> Coordinator::offers(const Round& round, std::string_view model,
                                           bool with_spares) const {
  std::vector<NodeOffer> offers;
  for (const NodeView& node : round.nodes) {
    if (!node.is_follower || !node.is_usable || holds_part(node, model)) continue;
    if (node.beat->is_spare && !with_spares) continue;
    NodeOffer offer{.node = node.id,
                    .name = round.members.name_of(node.id),
                    .free_bytes = node.beat->budget_bytes,
                    .speed = node.beat->speed,
                    .operations_s = node.beat->operations_s,
                    .link_bytes_s = node.beat->link_bytes_s,
                    .round_trips = node.beat->round_trips};
    for (const PlacementShare& part : node.beat->parts) offer.free_bytes -= part.bytes;
    for (const auto& [other, book] : books_) {
      if (other != model) offer.free_bytes -= held_for(round, other, book, node);
      for (const Attempt& attempt : book.attempts) {
        if (find_part(node, other, attempt.epoch) != nullptr) continue;
        offer.free_bytes -= bytes_on(attempt.plan.ranks, node.id);
      }
    }
    offer.free_bytes = std::max<int64_t>(0, offer.free_bytes);
    offers.push_back(offer);
  }
  return offers;
}

void Coordinator::begin(Round& round, Book& book, const DesiredEntry& entry, RankPlan plan) {
  LOCKSTEP_CHECK(!plan.ranks.empty() && plan.ranks.size() <= kPlacementRanksMax);
  Attempt attempt;
  last_counter_ = std::max(last_counter_, book.highest.counter) + 1;
  attempt.epoch = {last_counter_, self_, incarnation_};
  attempt.entry = entry;
  attempt.plan = std::move(plan);
  attempt.deadline_ms = round.now_ms + options_.attempt_ms;
  attempt.sent_ms = round.now_ms - options_.resend_ms;
  book.highest = attempt.epoch;
  book.attempts.push_back(std::move(attempt));
  send_step(round, book.attempts.back(), {});
  tell(entry.name, ModelPhase::kPlacing, book.highest, "");
}

// Whether it is still in flight.
bool Coordinator::advance(Round& round, Book& book, Attempt& attempt) const {
  const auto give_up = [&](const std::string& why, bool counts) {
    abort(round, book, attempt, why, counts);
    return false;
  };
  std::set<NodeId> started;
  const std::set<NodeId> ids = nodes_of(attempt.plan.ranks);
  for (const NodeId& id : ids) {
    const NodeView* node = find_node(round.nodes, id);
    if (node == nullptr || !node->is_follower) {
      return give_up(fmt::format("node {} was lost", round.members.name_of(id)), false);
    }
    const PlacementShare* part = find_part(*node, attempt.entry.name, attempt.epoch);
    if (part == nullptr) continue;
    // Now an ordinary placement, which failed.
    if (part->state == PartState::kFailed || part->state == PartState::kStopping) return false;
    attempt.granted.insert(id);
    if (part->state != PartState::kReserved) started.insert(id);
  }
  if (!attempt.refused.empty()) return give_up(attempt.refused, !attempt.was_overtaken);
  if (started == ids) return false;
  if (round.now_ms >= attempt.deadline_ms) return give_up("the nodes did not answer in time", true);
  if (!attempt.is_starting && attempt.granted == ids) {
    attempt.is_starting = true;
    attempt.sent_ms = round.now_ms - options_.resend_ms;
  }
  send_step(round, attempt, started);
  return true;
}

void Coordinator::send_step(Round& round, Attempt& attempt, const std::set<NodeId>& started) const {
  if (round.now_ms - attempt.sent_ms < options_.resend_ms) return;
  attempt.sent_ms = round.now_ms;
  for (const NodeId& id : nodes_of(attempt.plan.ranks)) {
    if (attempt.is_starting) {
      if (!started.contains(id)) {
        round.orders.push_back({id, StartOrder{attempt.entry.name, attempt.epoch}});
      }
    } else if (!attempt.granted.contains(id)) {
      round.orders.push_back({id, ReserveOrder{attempt.entry, attempt.epoch, attempt.plan}});
    }
  }
}

// Ends it on the nodes; the caller removes it.
void Coordinator::abort(Round& round, Book& book, const Attempt& attempt, const std::string& why,
                        bool counts) const {
  for (const NodeId& id : nodes_of(attempt.plan.ranks)) {
    const NodeView* node = find_node(round.nodes, id);
    if (node == nullptr || !node->is_follower) continue;
    round.orders.push_back({id, StopOrder{attempt.entry.name, attempt.epoch}});
  }
  if (counts) {
    back_off(round.now_ms, book, why);
  } else {
    book.failure = why;
    book.retry_at_ms = round.now_ms + options_.resend_ms;
  }
}

void Coordinator::back_off(int64_t now_ms, Book& book, const std::string& why) const {
  const int64_t wait_ms = std::min(options_.retry_ms << book.failures, options_.retry_max_ms);
  book.failures = std::min(book.failures + 1, kFailuresMax);
  book.retry_at_ms = now_ms + wait_ms;
  book.failure = why;
}

void Coordinator::tell(std::string_view model, ModelPhase phase, const PlacementEpoch& epoch,
                       std::string_view sentence) {
  if (progress_.size() >= kDesiredNamesMax) return;
  progress_.push_back({std::string(model), phase, epoch, short_sentence(sentence)});
}

}  // namespace lockstep
