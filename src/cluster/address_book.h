// AddressBook: where other nodes may be, and whom to call when. Addresses come from beacons, from
// `--join`, from other nodes and from the file of an earlier life (`peers.json` of the node's
// folder). Of two nodes that know of each other the one with the lower id calls at once, the other
// a second later if that has led to nothing. Calls that fail are repeated ever more seldom, up to
// kRetryMax. A pure function of the times it is given; one thread.
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
#include "net/frame_connection.h"

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

  // Whom to call: a node at one of its addresses, or whoever is at an address that the user gave.
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

  void want(const NetAddress& address, Clock::time_point now);
  // `is_alive`: it has just been heard itself, so that calling is worth while at once.
  void learn(const NodeId& node, const std::string& name, const NetAddress& address, bool is_alive,
             Clock::time_point now);

  // Those whose time has come; each is under way from then on, until one of the three below.
  std::vector<Target> take_due(Clock::time_point now);
  std::optional<Clock::time_point> next_due() const;

  void on_failed(const Target& target, Clock::time_point now);
  // The target is this node itself: it is never called again.
  void on_own(const Target& target);
  void on_connected(const NodeId& node, const std::string& name, const NetAddress& address,
                    const Target* target);
  void on_lost(const NodeId& node, Clock::time_point now);

  std::vector<Absent> absent() const;
  // Whether a node may be back in a moment, or met for the first time in this life: for kReturnMax
  // after it was lost, or after this node remembered it. One that is lost all the time is waited
  // for once in kReturnsApart.
  bool is_one_expected(Clock::time_point now) const;
  // As node_name_text(); of any node, connected or not.
  std::string name_of(const NodeId& node) const;
  // For the file: what is known of each node, JSON.
  std::string text() const;
  // What cannot be read is left out: these are hints.
  void read(std::string_view text, Clock::time_point now);

 private:
  struct Timing {
    Clock::time_point next_call;
    int failures = 0;
    bool is_under_way = false;
  };
  struct Node {
    std::string name;
    std::vector<NetAddress> addresses;  // the latest first
    size_t address_index = 0;           // the next to be called
    bool is_connected = false;
    Clock::time_point expected_until{};
    Timing timing;
  };
  struct Wanted {
    NetAddress address;
    std::optional<NodeId> node;  // who was found there
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
