// Messages between nodes over their control links, and their JSON form. They carry no tokens. Pure
// functions; invalid input is kCorrupt. Only version and program of other versions' messages are
// read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/meters/machine_meters.h"
#include "base/named_values.h"
#include "base/result.h"
#include "cluster/data_address.h"
#include "cluster/part.h"
#include "cluster/state/desired_state.h"

namespace lockstep {

// 4: nodes announce several addresses for links between ranks. 5: models have draft models.
inline constexpr int64_t kClusterVersion = 5;
inline constexpr size_t kClusterMessageBytesMax =
    (1 << 20) - 1;                       // the limit of cluster/peers/peers.h
inline constexpr size_t kNodesMax = 64;  // known to one node
inline constexpr size_t kEntriesPerMessage = 64;

// When this node last saw a request for a model that is loaded on demand.
struct ModelUse {
  std::string model;
  int64_t age_ms = 0;

  bool operator==(const ModelUse&) const = default;
};

// The round-trip time of a few bytes to another node, the recent minimum.
struct RoundTrip {
  NodeId node;
  int64_t us = 0;

  bool operator==(const RoundTrip&) const = default;
};

enum class ModelPhase : uint8_t { kWaiting, kPlacing, kLoading, kReady, kUnloading };

inline constexpr NamedValues<ModelPhase, 5> kModelPhases{{{ModelPhase::kWaiting, "waiting"},
                                                          {ModelPhase::kPlacing, "placing"},
                                                          {ModelPhase::kLoading, "loading"},
                                                          {ModelPhase::kReady, "ready"},
                                                          {ModelPhase::kUnloading, "unloading"}}};

// From the coordinator: the state of a model, for every node to show.
struct ModelProgress {
  std::string model;
  ModelPhase phase = ModelPhase::kWaiting;
  PlacementEpoch epoch;  // of the group that is loading or ready
  std::string sentence;  // why it waits

  bool operator==(const ModelProgress&) const = default;
};

// A model whose weights are being read, from the node that leads its group.
struct LoadProgress {
  std::string model;
  PlacementEpoch epoch;
  int64_t read_bytes = 0;
  int64_t whole_bytes = 0;
  int64_t bytes_s = 0;  // over the last seconds

  bool operator==(const LoadProgress&) const = default;
};

// To every connected node, every 400 ms and when something changes.
struct NodeHeartbeat {
  int64_t incarnation = 0;  // random, new at each start of the node
  int64_t sequence = 0;
  std::string program;       // its version, for people
  std::string name;          // its name, for people
  int64_t budget_bytes = 0;  // memory that models may use, in use or not
  int64_t speed = 0;         // memory bandwidth, bytes/s
  int64_t operations_s = 0;  // multiplications and additions of a prompt; 0: unknown
  int64_t link_bytes_s = 0;  // of its network; 0: unknown
  bool is_spare = false;     // used only where the others are not enough
  bool is_leaving = false;   // the last one of a node that was ordered to exit
  int64_t wall_ms = 0;       // since 1970, by the sender's clock
  int64_t power_mw = 0;      // of its processors and memory, recent; 0: unknown
  MachineMeters meters;      // of its machine, recent
  NodeId coordinator;        // the one that the node obeys
  int64_t desired_digest = 0;
  // For links between ranks, in the order of its preference; empty: the same as for control.
  std::vector<DataAddress> data_addresses;
  std::vector<NodeId> hears;  // nodes whose heartbeats reach it
  std::vector<RoundTrip> round_trips;
  std::vector<PlacementShare> parts;
  std::vector<ModelUse> uses;
  std::vector<ModelProgress> models;  // from a coordinator
  std::vector<LoadProgress> loads;
};

// Names and stamps of all entries: the receiver sends what the sender lacks.
struct DesiredSummary {
  std::vector<std::pair<std::string, Stamp>> stamps;
};

struct DesiredUpdate {
  std::vector<DesiredEntry> entries;  // at most kEntriesPerMessage, fewer if they are long
};

// Orders of the coordinator. Reserve: promise memory, answered by a ReserveReply.
struct ReserveOrder {
  DesiredEntry entry;
  PlacementEpoch epoch;
  RankPlan plan;
};

struct ReserveReply {
  std::string model;
  PlacementEpoch epoch;
  bool is_granted = false;
  PlacementEpoch highest;  // seen by the node for this model
  std::string reason;
};

struct StartOrder {
  std::string model;
  PlacementEpoch epoch;
};

struct StopOrder {
  std::string model;
  PlacementEpoch epoch;
};

// From any node, for a user: drain, exit and start again.
struct RestartOrder {};

// A message of a node of another version.
struct ForeignMessage {
  int64_t version = 0;
  std::string program;
};

using ClusterMessage =
    std::variant<NodeHeartbeat, DesiredSummary, DesiredUpdate, ReserveOrder, ReserveReply,
                 StartOrder, StopOrder, RestartOrder, ForeignMessage>;

std::string encode_cluster_message(const ClusterMessage& message);
Result<ClusterMessage> decode_cluster_message(std::string_view text);

}  // namespace lockstep
