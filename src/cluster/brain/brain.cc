#include "cluster/brain/brain.h"

#include <fmt/core.h>

#include <algorithm>
#include <type_traits>
#include <utility>

#include "base/check.h"
#include "base/hash.h"
#include "cluster/state/desired_json.h"
#include "cluster/state/model_names.h"

namespace lockstep {
namespace {

constexpr int kRoundsMax = 8;                     // of orders to itself per event
constexpr int64_t kKeptMsMax = int64_t{1} << 50;  // for ever: sums with it do not overflow

}  // namespace

Brain::Brain(const BrainOptions& options, DesiredState desired, PlanFunction plan, ClusterTime now)
    : options_(options),
      desired_(std::move(desired)),
      asked_(desired_),
      clock_(options.self, options.incarnation),
      membership_(options.self, options.membership, options.name),
      parts_(options.self, options.budget_bytes),
      coordinator_(options.self, options.incarnation, options.coordinator, std::move(plan),
                   now.ms) {
  for (const auto& [name, entry] : desired_.entries()) clock_.observe(entry.stamp);
}

ClusterActions Brain::on_tick(ClusterTime now) {
  membership_.tick(now.ms);
  parts_.tick(now.ms);
  return finish(now, true);
}

ClusterActions Brain::leave(ClusterTime now) {
  if (!std::exchange(is_leaving_, true)) {
    NodeHeartbeat last = own_beat(now);
    last.sequence = ++sequence_;
    last.is_leaving = true;
    send_all(std::move(last));
  }
  return finish(now);
}

ClusterActions Brain::on_peer_connected(ClusterTime now, const NodeId& peer) {
  membership_.connected(now.ms, peer);
  beat_at_ms_ = now.ms;
  return finish(now);
}

ClusterActions Brain::on_peer_lost(ClusterTime now, const NodeId& peer) {
  membership_.disconnected(now.ms, peer);
  return finish(now);
}

ClusterActions Brain::on_message(ClusterTime now, const NodeId& from,
                                 const std::shared_ptr<const ClusterMessage>& message) {
  if (const auto* beat = std::get_if<NodeHeartbeat>(message.get())) {
    take_heartbeat(now, from, {message, beat});
  } else {
    dispatch(now, from, *message);
  }
  return finish(now);
}

ClusterActions Brain::on_part_event(ClusterTime now, const std::string& model,
                                    const PlacementEpoch& epoch, const PartEvent& event) {
  parts_.report(model, epoch, event);
  return finish(now);
}

// A failed write counts as never requested. Part of it may be on disk (the flush failed, not the
// write), so the state is written again without it.
ClusterActions Brain::on_persisted(ClusterTime now, int64_t revision, const Status& status) {
  persisting_ = 0;
  if (status.ok()) {
    persisted_ = revision;
  } else {
    persist_at_ms_ = now.ms + options_.persist_retry_ms;
    actions_.push_back(NewsAction{status.error().message});
  }
  for (auto item = waiting_.begin(); item != waiting_.end();) {
    if (item->second.revision > revision) {
      ++item;
      continue;
    }
    if (status.ok()) take_effect(now, item->second.entry);
    answer(item->first, status);
    item = waiting_.erase(item);
  }
  if (!status.ok()) {
    asked_ = desired_;
    for (const auto& [request, write] : waiting_) asked_.merge(write.entry);
    ++revision_;
    for (auto& [request, write] : waiting_) write.revision = revision_;
  }
  return finish(now);
}

void Brain::take_effect(ClusterTime now, const DesiredEntry& entry) {
  if (desired_.merge(entry)) is_news_ = true;
  if (entry.wanted) note_use(now, entry.name);
  send_all(DesiredUpdate{{entry}});
}

ClusterActions Brain::load(ClusterTime now, int64_t request, DesiredEntry entry) {
  entry.wanted = true;
  write(now, request, std::move(entry));
  return finish(now);
}

ClusterActions Brain::unload(ClusterTime now, int64_t request, std::string_view name) {
  const ModelName found = find_model(asked_, name);
  if (found.entry == nullptr) {
    answer(request, Error{ErrorCode::kNotFound, no_such_model(name, found)});
    return finish(now);
  }
  DesiredEntry entry;
  entry.name = found.entry->name;
  write(now, request, std::move(entry));
  return finish(now);
}

ClusterActions Brain::restart(ClusterTime now, int64_t request, const NodeId& node) {
  const Member* member = membership_.find(node);
  if (node != options_.self && (member == nullptr || !member->is_alive())) {
    answer(request, Error{ErrorCode::kPeerLost,
                          fmt::format("node {} does not answer: start it on its own machine",
                                      membership_.name_of(node))});
    return finish(now);
  }
  send(node, RestartOrder{});
  answer(request, Ok{});
  return finish(now);
}

ClusterActions Brain::on_model_used(ClusterTime now, const std::string& model) {
  note_use(now, model);
  return finish(now);
}

void Brain::note_use(ClusterTime now, const std::string& model) {
  const DesiredEntry* entry = desired_.find(model);
  if (entry != nullptr && entry->wanted) used_ms_[model] = now.ms;
  if (used_ms_.size() > kDesiredNamesMax) {
    std::erase_if(used_ms_, [&](const auto& item) { return desired_.find(item.first) == nullptr; });
  }
  is_news_ = true;
}

ClusterActions Brain::plan_again(ClusterTime now) {
  coordinator_.plan_again();
  is_news_ = true;
  return finish(now);
}

void Brain::set_round_trips(std::vector<RoundTrip> round_trips) {
  LOCKSTEP_CHECK(round_trips.size() <= kNodesMax);
  round_trips_ = std::move(round_trips);
}

void Brain::set_data_addresses(std::vector<DataAddress> addresses) {
  LOCKSTEP_CHECK(addresses.size() <= kDataAddressesMax);
  data_addresses_ = std::move(addresses);
}

const std::vector<ModelProgress>& Brain::progress() const {
  static const std::vector<ModelProgress> kNothing;
  const NodeId id = coordinator();
  if (id == options_.self) return coordinator_.progress();
  const Member* member = membership_.find(id);
  return member == nullptr || member->last == nullptr ? kNothing : member->last->models;
}

void Brain::take_heartbeat(ClusterTime now, const NodeId& from,
                           std::shared_ptr<const NodeHeartbeat> beat) {
  const Member* before = membership_.find(from);
  const auto last = before == nullptr ? nullptr : before->last;
  const bool was_alive = before != nullptr && before->is_alive();
  membership_.heard(now.ms, from, beat, beat->wall_ms - now.wall_ms);
  const Member* member = membership_.find(from);
  if (member == nullptr || member->last != beat) return;  // late, or the table is full
  is_news_ = is_news_ || last == nullptr || was_alive != member->is_alive() ||
             last->coordinator != beat->coordinator || last->parts != beat->parts ||
             last->desired_digest != beat->desired_digest;
  if (beat->desired_digest == desired_.digest()) return;
  const auto sent = summary_ms_.find(from);
  if (sent != summary_ms_.end() && now.ms - sent->second < options_.summary_ms) return;
  if (sent == summary_ms_.end() && summary_ms_.size() >= kNodesMax) summary_ms_.clear();
  summary_ms_[from] = now.ms;
  DesiredSummary summary;
  for (const auto& [name, entry] : desired_.entries()) {
    summary.stamps.emplace_back(name, entry.stamp);
  }
  send(from, std::move(summary));
}

// Sends entries that the other node lacks or has older; the rest follows after its next summary.
void Brain::take(ClusterTime, const NodeId& from, const DesiredSummary& summary) {
  std::map<std::string_view, const Stamp*> theirs;
  for (const auto& [name, stamp] : summary.stamps) theirs[name] = &stamp;
  DesiredUpdate update;
  size_t bytes = 0;
  for (const auto& [name, entry] : desired_.entries()) {
    const auto known = theirs.find(name);
    if (known != theirs.end() && *known->second >= entry.stamp) continue;
    update.entries.push_back(entry);
    bytes += entry_text(entry).size();
    if (update.entries.size() >= kEntriesPerMessage || bytes >= kClusterMessageBytesMax / 2) break;
  }
  if (!update.entries.empty()) send(from, std::move(update));
}

void Brain::take(ClusterTime, const NodeId&, const DesiredUpdate& update) {
  for (const DesiredEntry& entry : update.entries) merge(entry);
}

void Brain::take(ClusterTime now, const NodeId& from, const ReserveOrder& order) {
  if (!obeys(from)) {
    send(from, ReserveReply{.model = order.entry.name,
                            .epoch = order.epoch,
                            .reason = fmt::format("node {} follows node {}",
                                                  membership_.name_of(options_.self),
                                                  membership_.name_of(coordinator()))});
    return;
  }
  merge(order.entry);  // a node that holds a part knows its entry
  const DesiredEntry* entry = desired_.find(order.entry.name);
  if (entry == nullptr || !entry->wanted) {
    send(from, ReserveReply{.model = order.entry.name,
                            .epoch = order.epoch,
                            .reason = fmt::format("model '{}' was unloaded", order.entry.name)});
    return;
  }
  send(from, parts_.reserve(now.ms, order));
}

void Brain::take(ClusterTime, const NodeId& from, const ReserveReply& reply) {
  if (coordinator() != options_.self) return;
  coordinator_.replied(from, reply);
  is_news_ = true;
}

void Brain::take(ClusterTime, const NodeId& from, const StartOrder& order) {
  if (!obeys(from)) return;
  if (const LocalPart* part = parts_.start(order)) {
    actions_.push_back(StartPartAction{part->entry, part->report});
  }
}

void Brain::take(ClusterTime, const NodeId& from, const StopOrder& order) {
  if (obeys(from)) stop_part(order.model, order.epoch);
}

// A node that is about to exit does not restart.
void Brain::take(ClusterTime, const NodeId& from, const RestartOrder&) {
  if (is_leaving_) return;
  if (from != options_.self) {
    actions_.push_back(
        NewsAction{fmt::format("node {} asks this node to restart", membership_.name_of(from))});
  }
  actions_.push_back(RestartAction{});
}

void Brain::take(ClusterTime now, const NodeId& from, const ForeignMessage& message) {
  membership_.heard_foreign(now.ms, from, message);
}

void Brain::dispatch(ClusterTime now, const NodeId& from, const ClusterMessage& message) {
  std::visit(
      [&](const auto& kind) {
        if constexpr (!std::is_same_v<std::decay_t<decltype(kind)>, NodeHeartbeat>) {
          take(now, from, kind);
        }
      },
      message);
}

void Brain::merge(const DesiredEntry& entry) {
  clock_.observe(entry.stamp);
  if (asked_.merge(entry)) ++revision_;
  if (desired_.merge(entry)) is_news_ = true;
}

void Brain::write(ClusterTime now, int64_t request, DesiredEntry entry) {
  if (waiting_.size() >= kRequestsWaitingMax) {
    return answer(request,
                  Error{ErrorCode::kExhausted,
                        fmt::format("{} requests are waiting for this node's disk, try again later",
                                    waiting_.size())});
  }
  entry.stamp = clock_.next(now.wall_ms);
  const Status put = asked_.put(entry);
  if (!put.ok()) return answer(request, put.error());
  waiting_[request] = {++revision_, std::move(entry)};
}

void Brain::answer(int64_t request, Status status) {
  actions_.push_back(AnswerAction{request, std::move(status)});
}

// Follows every event: orders if this node coordinates, a heartbeat if others must know, the disk,
// the news.
ClusterActions Brain::finish(ClusterTime now, bool is_tick) {
  act(now, is_tick);
  beat_if_due(now);
  persist_if_due(now);
  for (std::string& sentence : membership_.take_news()) {
    actions_.push_back(NewsAction{std::move(sentence)});
  }
  return std::exchange(actions_, {});
}

// An order to itself may make the next order possible at once.
void Brain::act(ClusterTime now, bool is_tick) {
  if (is_leaving_) return to_self_.clear();
  for (int round = 0; round < kRoundsMax; ++round) {
    end_unwanted_parts();
    if (coordinator() != options_.self) {
      coordinator_.resign();
    } else if (is_tick || is_news_ || parts_seen_ != parts_.revision()) {
      parts_seen_ = parts_.revision();
      coordinate(now);
    }
    is_tick = is_news_ = false;
    if (to_self_.empty()) return;
    for (const ClusterMessage& message : std::exchange(to_self_, {})) {
      dispatch(now, options_.self, message);
    }
  }
}

void Brain::coordinate(ClusterTime now) {
  const NodeHeartbeat own = own_beat(now);
  std::vector<NodeView> nodes{{options_.self, true, true, &own}};
  for (const auto& [id, member] : membership_.members()) {
    if (!member.is_alive()) continue;
    nodes.push_back({id, member.last->coordinator == options_.self, member.is_usable(now.ms),
                     member.last.get()});
  }
  auto orders = coordinator_.reconcile(now.ms, nodes, desired_, membership_);
  for (ClusterOrder& order : orders) send(order.to, std::move(order.message));
}

// Ends parts of models known to be unloaded, without a coordinator's order.
void Brain::end_unwanted_parts() {
  if (parts_.promised_bytes() == 0) return;
  for (const PlacementShare& part : parts_.reports()) {
    const DesiredEntry* entry = desired_.find(part.model);
    if (entry == nullptr || !entry->wanted) stop_part(part.model, part.epoch);
  }
}

void Brain::stop_part(const std::string& model, const PlacementEpoch& epoch) {
  if (parts_.stop(model, epoch)) actions_.push_back(StopPartAction{model, epoch});
}

void Brain::persist_if_due(ClusterTime now) {
  if (revision_ == persisted_ || persisting_ != 0 || now.ms < persist_at_ms_) return;
  persisting_ = revision_;
  actions_.push_back(PersistAction{revision_, std::make_shared<const DesiredState>(asked_)});
}

void Brain::send(const NodeId& to, ClusterMessage message) {
  if (to == options_.self) {
    to_self_.push_back(std::move(message));
    return;
  }
  auto shared = std::make_shared<const ClusterMessage>(std::move(message));
  actions_.push_back(SendAction{to, std::move(shared)});
}

void Brain::send_all(ClusterMessage message) {
  const auto shared = std::make_shared<const ClusterMessage>(std::move(message));
  for (const auto& [id, member] : membership_.members()) {
    if (member.is_connected()) actions_.push_back(SendAction{id, shared});
  }
}

void Brain::beat_if_due(ClusterTime now) {
  if (is_leaving_) return;
  const int64_t key = beat_key(now);
  if (now.ms < beat_at_ms_ && key == beat_key_) return;
  beat_key_ = key;
  beat_at_ms_ = now.ms + options_.heartbeat_ms;
  NodeHeartbeat beat = own_beat(now);
  beat.sequence = ++sequence_;
  send_all(std::move(beat));
}

int64_t Brain::beat_key(ClusterTime now) const {
  Fnv key;
  key.add(static_cast<uint64_t>(parts_.revision())).add(static_cast<uint64_t>(desired_.digest()));
  key.add(std::hash<NodeId>()(coordinator()));
  for (const NodeId& id : membership_.hears(now.ms)) key.add(std::hash<NodeId>()(id));
  return static_cast<int64_t>(key.value());
}

ClusterActions Brain::on_model_kept(ClusterTime now, const std::string& model, int64_t keep_ms) {
  const DesiredEntry* entry = desired_.find(model);
  if (entry == nullptr || !entry->wanted || entry->promises.idle_unload_s == 0) return finish(now);
  const int64_t kept_ms = keep_ms < 0 ? kKeptMsMax : std::min(keep_ms, kKeptMsMax);
  used_ms_[model] = now.ms + kept_ms - 1000 * entry->promises.idle_unload_s;
  is_news_ = true;
  return finish(now);
}

int64_t Brain::idle_left_ms(ClusterTime now, const DesiredEntry& entry) const {
  const int64_t idle_ms = 1000 * entry.promises.idle_unload_s;
  int64_t left_ms = 0;
  const auto own = used_ms_.find(entry.name);
  if (own != used_ms_.end()) left_ms = std::max(left_ms, own->second + idle_ms - now.ms);
  for (const auto& [id, member] : membership_.members()) {
    if (!member.is_alive() || !member.last) continue;
    for (const ModelUse& use : member.last->uses) {
      if (use.model == entry.name) left_ms = std::max(left_ms, idle_ms - use.age_ms);
    }
  }
  return left_ms;
}

NodeHeartbeat Brain::own_beat(ClusterTime now) const {
  NodeHeartbeat beat;
  beat.incarnation = options_.incarnation;
  beat.program = options_.program;
  beat.name = options_.name;
  beat.data_addresses = data_addresses_;
  beat.budget_bytes = options_.budget_bytes;
  beat.speed = options_.speed;
  beat.operations_s = options_.operations_s;
  beat.link_bytes_s = options_.link_bytes_s;
  beat.is_spare = options_.is_spare;
  beat.wall_ms = now.wall_ms;
  beat.power_mw = power_mw_;
  beat.meters = meters_;
  beat.loads = loads_;
  beat.coordinator = coordinator();
  beat.desired_digest = desired_.digest();
  beat.hears = membership_.hears(now.ms);
  beat.round_trips = round_trips_;
  beat.parts = parts_.reports();
  for (const auto& [model, used_ms] : used_ms_) {
    const DesiredEntry* entry = desired_.find(model);
    if (entry == nullptr || !entry->wanted || entry->promises.idle_unload_s == 0) continue;
    const int64_t age_ms = std::max<int64_t>(0, now.ms - used_ms);
    if (age_ms / 1000 < entry->promises.idle_unload_s) beat.uses.push_back({model, age_ms});
  }
  if (beat.coordinator == options_.self) beat.models = coordinator_.progress();
  return beat;
}

}  // namespace lockstep
