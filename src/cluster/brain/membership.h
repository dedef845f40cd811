// Membership: which nodes are alive, as this node measures it. A node is alive while its heartbeats
// arrive and say that ours reach it, so a one-way link counts as none. A node that comes and goes
// must stay for a growing time before models are placed on it. The coordinator is the lowest id
// alive. Soft state: no votes, nothing on disk. One thread; times are passed in, from a monotonic
// clock in milliseconds.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cluster/brain/messages.h"
#include "cluster/node_id.h"

namespace lockstep {

struct MembershipOptions {
  int64_t suspect_ms = 900;  // silence worth reporting
  int64_t dead_ms = 1'400;   // silence that ends it: with a heartbeat every 400 ms and a tick every
                             // 200 ms a loss is seen within 2 s
  int64_t hold_ms = 2'000;   // for a node lost once; doubled by each further loss
  int64_t hold_max_ms = 60'000;
  int64_t forgive_ms = 60'000;  // of staying alive cancel one loss
};

enum class MemberState : uint8_t { kAlive, kSuspect, kDead, kForeign };

inline constexpr NamedValues<MemberState, 4> kMemberStates{{{MemberState::kAlive, "alive"},
                                                            {MemberState::kSuspect, "suspect"},
                                                            {MemberState::kDead, "dead"},
                                                            {MemberState::kForeign, "foreign"}}};

struct Member {
  MemberState state = MemberState::kDead;
  int connections = 0;                        // made minus lost, reported in any order
  std::shared_ptr<const NodeHeartbeat> last;  // null until the first
  int64_t heard_ms = -1;                      // when; -1: never
  int64_t gone_ms = 0;                        // since when, if dead
  int64_t usable_ms = 0;                      // if alive: models are placed there from then on
  int losses = 0;                             // not forgiven yet
  int64_t loss_ms = 0;                        // when last lost, or last forgiven
  int64_t previous_life = -1;                 // an incarnation that has ended
  int64_t clock_ahead_ms = 0;                 // its wall clock minus ours, at the last heartbeat
  std::string note;                           // if foreign: what to do

  bool is_connected() const { return connections > 0; }
  bool is_alive() const { return state == MemberState::kAlive || state == MemberState::kSuspect; }
  bool is_usable(int64_t now_ms) const { return is_alive() && now_ms >= usable_ms; }
};

class Membership {
 public:
  // `name` is this node's.
  Membership(const NodeId& self, const MembershipOptions& options, std::string name)
      : self_(self), options_(options), name_(std::move(name)) {
    ++name_counts_[name_];
  }

  void connected(int64_t now_ms, const NodeId& peer);
  void disconnected(int64_t now_ms, const NodeId& peer);
  void heard(int64_t now_ms, const NodeId& peer, std::shared_ptr<const NodeHeartbeat> beat,
             int64_t clock_ahead_ms = 0);
  void heard_foreign(int64_t now_ms, const NodeId& peer, const ForeignMessage& message);
  void tick(int64_t now_ms);

  NodeId coordinator() const;
  // Nodes whose heartbeats arrived lately, whether or not ours reach them.
  std::vector<NodeId> hears(int64_t now_ms) const;
  const Member* find(const NodeId& peer) const;
  // See node_name_text().
  std::string name_of(const NodeId& node) const;
  const std::map<NodeId, Member>& members() const { return members_; }
  // When a node last became alive; 0: none has yet.
  int64_t gained_ms() const { return gained_ms_; }
  // Sentences about changes since the last call.
  std::vector<std::string> take_news() { return std::exchange(news_, {}); }

 private:
  std::string_view told_name(const NodeId& node) const;
  void forget_name(const Member& member);
  Member* known(int64_t now_ms, const NodeId& peer);
  bool make_room();
  void judge(int64_t now_ms, const NodeId& peer, Member& member);
  void gained(int64_t now_ms, const NodeId& peer, Member& member);
  void lost(int64_t now_ms, const NodeId& peer, Member& member, const std::string& why);
  void left(int64_t now_ms, const NodeId& peer, Member& member);
  void forgive(int64_t now_ms, Member& member) const;

  NodeId self_;
  MembershipOptions options_;
  std::string name_;
  std::map<NodeId, Member> members_;                     // without this node; at most kNodesMax
  std::map<std::string, int, std::less<>> name_counts_;  // of reported names, including this node's
  int64_t gained_ms_ = 0;
  std::vector<std::string> news_;
};

}  // namespace lockstep
