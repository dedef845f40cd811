// ClusterModels: the models of the cluster as this node's API offers them. Each desired model has a
// RoutedModel, whose requests are routed to the serving groups, on this node or others; streams of
// other nodes' requests are accepted for the groups that this node leads. ModelDirectory: any
// thread; the rest: the loop's.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/state/desired_state.h"
#include "net/event_loop.h"
#include "node/cluster/cluster_driver.h"
#include "node/cluster/cluster_parts.h"
#include "node/cluster/offered_models.h"
#include "node/cluster/routed_model.h"
#include "node/cluster/serving_placement.h"
#include "node/fetch/model_copies.h"
#include "node/fetch/model_fetcher.h"
#include "node/fetch/share_copies.h"
#include "node/models/model_directory.h"
#include "node/requests/request_stream_host.h"
#include "node/worker/disk_thread.h"

namespace lockstep {

class ClusterModels final : public ModelDirectory,
                            public std::enable_shared_from_this<ClusterModels> {
 public:
  static constexpr size_t kStreamsMax = 256;  // of other nodes' requests

  struct Surroundings {
    NodeId self;
    ClusterDriver& driver;
    ClusterParts& parts;
    ModelFetcher& fetcher;
  };

  explicit ClusterModels(EventLoop& loop) : loop_(loop) {}

  void connect(const Surroundings& surroundings);
  // Ends every request and offers nothing any more. To be called before the loop ends.
  void close();

  // Open streams of other nodes' requests.
  size_t stream_count() const { return streams_.size(); }
  // The desired state, the serving placements or this node's groups have changed.
  void update();
  // A stream of kind kRequestStream.
  void on_stream(const Channel& channel, FrameConnection connection);

  // Why the files of a model that is to run are not on this node; empty: they are being fetched.
  // Any thread.
  std::string problem_of(const std::string& path) const;

  std::vector<std::shared_ptr<ModelService>> models() const override;
  Result<std::shared_ptr<ModelService>> find(std::string_view name) override;
  void await_files(std::string_view name, std::chrono::milliseconds patience) const override;
  bool is_on_demand(std::string_view name) const override;
  void keep(std::string_view name, std::chrono::milliseconds time) override;

 private:
  // A route to a group, or the attempt to make one.
  struct GroupRoute {
    ServingPlacement placement;
    uint64_t attempt = 0;  // the number of the attempt, new each time
    uint64_t route = 0;    // of the RoutedModel; 0: not yet
  };
  struct Item {
    DesiredEntry entry;
    uint64_t fetch = 0;        // of the small files; 0: none in flight
    uint64_t table_fetch = 0;  // of what planning needs; 0: none in flight
    bool is_table_here = false;
    bool is_draft_model_here = false;
    std::shared_ptr<RoutedModel> model;  // null until the small files are here
    std::string problem;                 // why they are not here
    EventLoop::Timer retry;
    std::map<PlacementEpoch, GroupRoute> routes;  // to the groups that serve
    EventLoop::Timer refusal;                     // until the sentence becomes a refusal
    std::string sentence;                         // why it waits
    std::optional<int64_t> keep_ms;               // after its last request ends, until the next one
  };

  void drop_unwanted(const DesiredState& desired);
  void fetch(const std::string& name);
  void take_entry(Item& item, const DesiredEntry& entry);
  void fetch_for_planning(const std::string& name, Item& item);
  ModelFetcher::Events planning_events(const std::string& name, const std::string& path,
                                       bool Item::*is_here);
  void keep_copies();
  void cancel_fetches(const Item& item);
  void keep_used();
  void keep_item(Item& item, const std::string& name);
  void use(const std::string& name);
  void read(const std::string& name, const std::string& path, const std::filesystem::path& folder);
  void on_folder(const std::string& name, const std::string& path, Result<ModelFolder> folder);
  bool is_meant(const std::string& name, const std::string& path) const;
  void on_problem(const std::string& name, const std::string& why);
  void show_waiting(const std::string& name, Item& item);
  void lead(const std::string& name, Item& item);
  void route_locally(const std::string& name, Item& item, GroupRoute& group_route);
  void route_remotely(const std::string& name, const GroupRoute& group_route);
  void on_route_open(const std::string& name, const GroupRoute& meant,
                     Result<FrameConnection> stream);
  void on_route_lost(const std::string& name, uint64_t route);
  void retry_route(const std::string& name, const PlacementEpoch& epoch);
  void publish();

  EventLoop& loop_;
  std::unique_ptr<Surroundings> around_;
  std::map<std::string, Item, std::less<>> items_;
  std::map<uint64_t, std::unique_ptr<RequestStreamHost>> streams_;
  uint64_t next_number_ = 1;
  uint64_t last_attempt_ = 0;
  EventLoop::Timer use_timer_;
  std::unique_ptr<ModelCopies> copies_;  // from connect() on
  std::unique_ptr<ShareCopies> shares_;  // from connect() on, if this node keeps shares
  DiskThread disk_{kDesiredLiveMax};     // a hanging disk blocks only the model it holds
  OfferedModels offered_;
};

}  // namespace lockstep
