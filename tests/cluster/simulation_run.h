// The implementation of simulate(): one run. simulation.cc moves time, messages and processes,
// simulation_weather.cc injects faults and user requests, simulation_checks.cc checks the
// invariants.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "cluster/brain/brain.h"
#include "cluster/seeded_random.h"
#include "cluster/simulated_node.h"
#include "cluster/simulation.h"

namespace lockstep {

inline constexpr int64_t kGib = int64_t{1} << 30;

class SimulationRun {
 public:
  explicit SimulationRun(const SimulationOptions& options);
  SimulationResult run();

 private:
  enum class EventKind : uint8_t { kTick, kMessage, kCall };
  struct Event {
    int64_t at_ms = 0;
    uint64_t order = 0;
    EventKind kind = EventKind::kTick;
    int node = 0;
    int from = 0;
    int64_t life = 0;       // of `node`
    int64_t from_life = 0;  // of a message's sender
    std::shared_ptr<const ClusterMessage> message;
    std::function<void()> call;

    bool operator>(const Event& other) const {
      return std::tie(at_ms, order) > std::tie(other.at_ms, other.order);
    }
  };
  struct Acknowledged {
    Stamp stamp;
    uint32_t disks = 0;  // a bit for each machine whose disk has it or a later write
  };

  // Time and machines.
  void at(int64_t delay_ms, int node, std::function<void()> call);
  void push(Event event);
  void happen(Event& event);
  ClusterTime now(const SimulatedNode& node) const;
  void start(int index);
  bool has_planned(int index, const DesiredEntry& entry, size_t groups,
                   std::span<const NodeOffer> offers);
  void crash(int index, bool loses_disk);
  void fail(std::string what);
  void say(const std::string& what);

  // Actions of the Brains.
  void act(int index, ClusterActions actions);
  void act(int index, SendAction& action);
  void act(int index, StartPartAction& action);
  void act(int index, StopPartAction& action);
  void act(int index, PersistAction& action);
  void act(int index, AnswerAction& action);
  void act(int index, RestartAction& action);
  void act(int index, NewsAction& action);
  void end_part(int index, const std::string& model, const PlacementEpoch& epoch,
                const PartEvent& event);

  // The network.
  void pulse();
  void connect(int a, int b);
  void disconnect(int a, int b);

  // Users.
  void load_something();
  void unload_something();
  void use_something();
  int any_node(bool is_up);
  std::string any_model();

  // Weather.
  void weather();
  void machine_weather(int64_t kind);
  void network_weather(int64_t kind);
  void disk_weather(int64_t kind);
  void join();
  void leave();
  void heal();
  void calm();
  void wild();

  // Checks.
  void check_node(int index);
  void check_start(int index, const StartPartAction& action);
  void check_write(int index, const DesiredState& state);
  void note_disk(int index);
  void check_agreement();
  void check_calm();
  void check_model(const DesiredEntry& entry);
  void check_only_wanted_runs(const DesiredState& desired);

  SimulationOptions options_;
  SeededRandom random_;
  SeededRandom planning_;  // how long plans take
  SimulationResult result_;
  int64_t clock_ms_ = 0;
  uint64_t order_ = 0;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::vector<SimulatedNode> nodes_;
  std::map<NodeId, int> index_;
  std::vector<std::vector<char>> connected_;
  std::vector<std::vector<char>> cut_;  // messages from one to the other are lost
  bool is_wild_ = false;
  bool over_wire_ = false;  // encode each message as JSON
  double loss_ = 0;
  double twice_ = 0;
  int64_t delay_max_ms_ = 5;
  int64_t next_request_ = 1;
  std::map<int64_t, std::pair<std::string, Stamp>> requests_;
  std::map<std::string, std::vector<Acknowledged>> acknowledged_;
  std::map<std::pair<std::string, PlacementEpoch>, std::vector<RankPart>> placements_;
  // By node, life and model: the last epoch that was started.
  std::map<std::tuple<int, int64_t, std::string>, PlacementEpoch> started_;
};

// A simulated model's path is its size.
int64_t simulated_bytes(const DesiredEntry& entry);

}  // namespace lockstep
