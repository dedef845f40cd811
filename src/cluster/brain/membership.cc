#include "cluster/brain/membership.h"

#include <fmt/core.h>

#include <algorithm>

namespace lockstep {
namespace {

constexpr int kLossesMax = 8;

bool contains(const std::vector<NodeId>& ids, const NodeId& id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

}  // namespace

void Membership::connected(int64_t now_ms, const NodeId& peer) {
  if (Member* member = known(now_ms, peer)) ++member->connections;
}

void Membership::disconnected(int64_t now_ms, const NodeId& peer) {
  Member* member = known(now_ms, peer);
  if (member == nullptr) return;
  --member->connections;
  judge(now_ms, peer, *member);
}

void Membership::heard(int64_t now_ms, const NodeId& peer,
                       std::shared_ptr<const NodeHeartbeat> beat, int64_t clock_ahead_ms) {
  Member* member = known(now_ms, peer);
  if (member == nullptr) return;
  const NodeHeartbeat* last = member->last.get();
  if (last != nullptr && beat->incarnation == last->incarnation) {
    if (beat->sequence <= last->sequence) return;
  } else {
    if (beat->incarnation == member->previous_life) return;  // late, from a run that has ended
    if (last != nullptr) {
      member->previous_life = last->incarnation;
      if (member->is_alive()) lost(now_ms, peer, *member, "it was restarted");
    }
  }
  forget_name(*member);
  ++name_counts_[beat->name];
  member->last = std::move(beat);
  member->heard_ms = now_ms;
  member->clock_ahead_ms = clock_ahead_ms;
  member->note.clear();
  if (member->state == MemberState::kForeign) member->state = MemberState::kDead;
  judge(now_ms, peer, *member);
}

void Membership::heard_foreign(int64_t now_ms, const NodeId& peer, const ForeignMessage& message) {
  Member* member = known(now_ms, peer);
  if (member == nullptr || member->state == MemberState::kForeign) return;
  if (member->is_alive()) lost(now_ms, peer, *member, "it speaks another version");
  member->state = MemberState::kForeign;
  member->gone_ms = now_ms;
  member->note = fmt::format(
      "node {} runs lockstep {} (cluster version {}), this node has version {}: install the same "
      "on both; it is left out",
      name_of(peer), message.program, message.version, kClusterVersion);
  news_.push_back(member->note);
}

void Membership::tick(int64_t now_ms) {
  for (auto& [peer, member] : members_) judge(now_ms, peer, member);
}

NodeId Membership::coordinator() const {
  for (const auto& [peer, member] : members_) {
    if (peer > self_) break;
    if (member.is_alive()) return peer;
  }
  return self_;
}

std::vector<NodeId> Membership::hears(int64_t now_ms) const {
  std::vector<NodeId> ids;
  ids.reserve(members_.size());
  for (const auto& [peer, member] : members_) {
    const bool is_heard = member.heard_ms >= 0 && now_ms - member.heard_ms < options_.dead_ms;
    if (is_heard && member.state != MemberState::kForeign) ids.push_back(peer);
  }
  return ids;
}

const Member* Membership::find(const NodeId& peer) const {
  const auto found = members_.find(peer);
  return found == members_.end() ? nullptr : &found->second;
}

// Empty: unknown.
std::string_view Membership::told_name(const NodeId& node) const {
  if (node == self_) return name_;
  const Member* member = find(node);
  return member == nullptr || member->last == nullptr ? "" : std::string_view(member->last->name);
}

std::string Membership::name_of(const NodeId& node) const {
  const std::string_view name = told_name(node);
  const auto count = name_counts_.find(name);
  return node_name_text(node, name, count != name_counts_.end() && count->second > 1);
}

void Membership::forget_name(const Member& member) {
  if (member.last == nullptr) return;
  const auto count = name_counts_.find(member.last->name);
  if (--count->second == 0) name_counts_.erase(count);
}

// Null if the table is full of nodes that are alive or connected.
Member* Membership::known(int64_t now_ms, const NodeId& peer) {
  if (peer == self_) return nullptr;
  const auto found = members_.find(peer);
  if (found != members_.end()) return &found->second;
  if (members_.size() + 1 >= kNodesMax && !make_room()) {
    if (news_.size() < kNodesMax) {
      news_.push_back(fmt::format("node {} is left out: a cluster has at most {} nodes",
                                  name_of(peer), kNodesMax));
    }
    return nullptr;
  }
  Member& member = members_[peer];
  member.gone_ms = now_ms;
  return &member;
}

// Evicts the node that was away longest.
bool Membership::make_room() {
  auto longest = members_.end();
  for (auto item = members_.begin(); item != members_.end(); ++item) {
    if (item->second.is_alive() || item->second.is_connected()) continue;
    if (longest == members_.end() || item->second.gone_ms < longest->second.gone_ms) longest = item;
  }
  if (longest == members_.end()) return false;
  forget_name(longest->second);
  members_.erase(longest);
  return true;
}

void Membership::judge(int64_t now_ms, const NodeId& peer, Member& member) {
  if (member.state == MemberState::kForeign || member.last == nullptr) return;
  const int64_t silence_ms = now_ms - member.heard_ms;
  if (member.last->is_leaving) {
    if (member.is_alive()) left(now_ms, peer, member);
    return;
  }
  const bool is_mutual = contains(member.last->hears, self_);
  if (silence_ms >= options_.dead_ms || !is_mutual) {
    if (!member.is_alive()) return;
    lost(now_ms, peer, member,
         is_mutual ? fmt::format("silent for {} ms", silence_ms)
                   : std::string("messages from this node do not reach it"));
    return;
  }
  if (!member.is_alive()) gained(now_ms, peer, member);
  forgive(now_ms, member);
  const bool is_suspect = silence_ms >= options_.suspect_ms || !member.is_connected();
  member.state = is_suspect ? MemberState::kSuspect : MemberState::kAlive;
}

void Membership::gained(int64_t now_ms, const NodeId& peer, Member& member) {
  // Time away forgives losses too, so that a machine switched off overnight comes back like a new
  // one.
  const int64_t away_ms = now_ms - member.gone_ms;
  member.losses -= static_cast<int>(
      std::min<int64_t>(member.losses, away_ms / std::max<int64_t>(1, options_.forgive_ms)));
  int64_t hold_ms = 0;
  if (member.losses > 0) {
    hold_ms = std::min(options_.hold_ms << (member.losses - 1), options_.hold_max_ms);
  }
  member.usable_ms = now_ms + hold_ms;
  member.loss_ms = now_ms;
  member.state = MemberState::kAlive;
  gained_ms_ = now_ms;
  news_.push_back(
      hold_ms == 0
          ? fmt::format("node {} is connected", name_of(peer))
          : fmt::format(
                "node {} is back; no model is placed there for {} s because it was lost {} times",
                name_of(peer), hold_ms / 1000, member.losses));
}

void Membership::lost(int64_t now_ms, const NodeId& peer, Member& member, const std::string& why) {
  member.state = MemberState::kDead;
  member.gone_ms = now_ms;
  member.losses = std::min(member.losses + 1, kLossesMax);
  member.loss_ms = now_ms;
  news_.push_back(fmt::format("node {} is lost: {}", name_of(peer), why));
}

// Not counted as a loss: a restarted node gets models at once.
void Membership::left(int64_t now_ms, const NodeId& peer, Member& member) {
  member.state = MemberState::kDead;
  member.gone_ms = now_ms;
  news_.push_back(fmt::format("node {} is shutting down", name_of(peer)));
}

void Membership::forgive(int64_t now_ms, Member& member) const {
  while (member.losses > 0 && now_ms - member.loss_ms >= options_.forgive_ms) {
    --member.losses;
    member.loss_ms += options_.forgive_ms;
  }
}

}  // namespace lockstep
