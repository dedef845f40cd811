// AddressBook: where other nodes may be, and which to call when. Addresses come from beacons, from
// `--join`, from other nodes and from the file of an earlier run (`peers.json` in the node's
// folder). When two nodes know each other, the one with the lower id calls at once, the other a
// second later if they are still not connected. Failed calls are retried with growing pauses, up to
// kRetryMax. A pure function of the times passed in; one thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cluster/node_id.h"
#include "net/frames/frame_connection.h"

namespace lockstep {

class AddressBook {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kSecondCaller{1'000};
  static constexpr std::chrono::milliseconds kRetryFirst{500};
  static constexpr std::chrono::milliseconds kRetryMax{30'000};
  static constexpr std::chrono::milliseconds kReturnMax{2'000};
  static constexpr std::chrono::milliseconds kReturnsApart{10'000};
  static constexpr size_t kNodesMax = 256;
  static constexpr size_t kAddressesMax = 8;  // of one node: both families on four interfaces
  static constexpr size_t kWantedMax = 64;

  // A call's target: a node at one of its addresses, or any node at an address that the user gave.
  struct Target {
    std::optional<NodeId> node;
    NetAddress address;
  };
  struct Absent {
    NodeId id;
    std::string name;
    NetAddress address;
  };

  explicit AddressBook(const NodeId& own) : own_(own) {}

  // How an address was learned.
  enum class Hint {
    kTold,   // reported by another member, or remembered
    kAlive,  // the node itself was just heard, so a call at once is worthwhile
    kCopy,   // from a copy of a beacon: another path to the node, or sent by anyone
  };

  void want(const NetAddress& address, Clock::time_point now);
  // An address from a copy is added last and moves none of the known ones.
  void learn(const NodeId& node, const std::string& name, const NetAddress& address, Hint hint,
             Clock::time_point now);

  // Targets that are due; each is in flight until one of the next three functions is called.
  std::vector<Target> take_due(Clock::time_point now);
  std::optional<Clock::time_point> next_due() const;

  void on_failed(const Target& target, Clock::time_point now);
  // The target is this node itself: never called again.
  void on_own(const Target& target);
  void on_connected(const NodeId& node, const std::string& name, const NetAddress& address,
                    const Target* target);
  void on_lost(const NodeId& node, Clock::time_point now);

  std::vector<Absent> absent() const;
  // Whether a node may be back in a moment, or met for the first time in this run: for kReturnMax
  // after it was lost, or after this node remembered it. A node lost repeatedly is waited for once
  // per kReturnsApart.
  bool is_one_expected(Clock::time_point now) const;
  // See node_name_text(); for any node, connected or not.
  std::string name_of(const NodeId& node) const;
  // For the file: what is known of each node, as JSON.
  std::string text() const;
  // Skips unreadable entries: these are only hints.
  void read(std::string_view text, Clock::time_point now);

 private:
  struct Timing {
    Clock::time_point next_call;
    int failures = 0;
    bool is_under_way = false;
  };
  struct Node {
    std::string name;
    std::vector<NetAddress> addresses;  // latest first
    size_t address_index = 0;           // to be called next
    bool is_connected = false;
    Clock::time_point expected_until{};
    Timing timing;
  };
  struct Wanted {
    NetAddress address;
    std::optional<NodeId> node;  // the node found there
    bool is_own = false;
    Timing timing;
  };

  static void expect(Node& node, Clock::time_point now);
  bool is_idle(const Node& node) const { return !node.is_connected && !node.timing.is_under_way; }
  bool is_idle(const Wanted& wanted) const;
  Clock::time_point first_call(const NodeId& node, Clock::time_point now) const;
  static void postpone(Timing& timing, Clock::time_point now);
  Timing* timing_of(const Target& target);
  bool make_room();

  NodeId own_;
  std::map<NodeId, Node> nodes_;
  std::vector<Wanted> wanted_;
};

}  // namespace lockstep
