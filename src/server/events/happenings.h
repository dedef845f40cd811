// Happenings: what has happened in a cluster, in sentences, found by comparing two looks at it.
// Pure but for the last look; one thread. Used by server/operations/status_watch.h.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "node/cluster/cluster_control.h"
#include "node/models/model_service.h"

namespace lockstep {

struct Happening {
  // "joined", "node_lost", "node_back"; of models "load", "ready", "waits", "paused", "healed",
  // "failed", "unload".
  std::string kind;
  std::string sentence;

  bool operator==(const Happening&) const = default;
};

class Happenings {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // Those since the last look, in the order in which people want to read them. The first look has
  // none. `models`: those that this node serves; the report has those of the cluster.
  std::vector<Happening> look(const ClusterReport& report, const std::vector<ModelStatus>& models,
                              Time now);

 private:
  struct Node {
    std::string name;
    bool is_alive = false;
    bool was_there = false;  // seen alive, or known before
  };
  struct Model {
    bool is_ready = false;
    bool was_ready = false;  // at any look
    bool has_failed = false;
    int restarts = 0;
    std::string last_error;
    std::string sentence;             // why it waits
    std::optional<Time> paused_at{};  // it was ready before
  };
  using Nodes = std::map<NodeId, Node>;
  using Models = std::map<std::string, Model>;

  void look_at_nodes(const ClusterReport& report);
  void look_at_models(const ClusterReport& report, const std::vector<ModelStatus>& models,
                      Time now);
  void compare(const std::string& name, const Model& before, Model& after, Time now);
  void add(std::string kind, std::string sentence);

  bool has_looked_ = false;
  Nodes nodes_;
  Models models_;
  std::vector<Happening> found_;  // of this look
};

}  // namespace lockstep
