#include "node/cluster/cluster_node.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/files/private_file.h"
#include "base/log.h"
#include "hub/files/settings.h"
#include "net/event_loop.h"
#include "node/cluster/cluster_driver.h"
#include "node/cluster/cluster_models.h"
#include "node/cluster/cluster_parts.h"
#include "node/cluster/cluster_plan.h"
#include "node/cluster/drain_wait.h"
#include "node/disks/disk_messages.h"
#include "node/fetch/model_fetcher.h"
#include "node/fetch/piece_host.h"
#include "node/network/network_speed.h"
#include "node/network/own_addresses.h"
#include "node/network/shared_networks.h"
#include "node/requests/stream_route.h"
#include "node/worker/worker_stream.h"
#include "planner/facts/measured_machine.h"

namespace lockstep {
namespace {

using std::chrono::milliseconds;

// Limits how long the start takes.
constexpr uint64_t kReadProbeBytesAtStart = uint64_t{256} << 20;

// A node works even if its memory speed cannot be measured.
MeasuredSpeed speed_of_this_machine() {
  const auto speed = measure_this_machine(kReadProbeBytesAtStart);
  if (speed.ok()) return speed.value();
  log_warn("node: this machine's memory speed is unknown: {}", speed.error().message);
  return {};
}

// For a model whose weights are to be placed. kTimeout while its files are being fetched.
Result<std::string> path_for_plan(const std::string& model, const FetchSettings& settings,
                                  const std::weak_ptr<ClusterModels>& models) {
  const auto here = ModelFetch::table_here(model, settings);
  if (here.ok()) return here.value().string();
  if (here.error().code != ErrorCode::kNotFound) return here.error();
  const auto known = models.lock();
  const std::string why = known ? known->problem_of(model) : "";
  if (!why.empty()) return Error{ErrorCode::kNotFound, why};
  return Error{ErrorCode::kTimeout, "its files are being fetched to the node that places it"};
}

// A sum waits for the slowest of its links.
int64_t slowest_bytes_s(const std::vector<DataAddress>& addresses) {
  int64_t slowest = 0;
  for (const DataAddress& one : addresses) {
    const int64_t bytes_s = network_bytes_s(one.host);
    slowest = slowest == 0 ? bytes_s : std::min(slowest, bytes_s);
  }
  return slowest == 0 ? kNetworkBytesDefault : slowest;
}

// The addresses for links as they are now; the log says when they have changed.
class AnnouncedAddresses {
 public:
  AnnouncedAddresses(DataNetworks networks, std::vector<DataAddress> at_start)
      : networks_(std::move(networks)), last_(std::move(at_start)) {}

  std::vector<DataAddress> operator()() {
    Result<std::vector<DataAddress>> now = networks_.own(own_addresses());
    const std::string problem = now.ok() ? "" : now.error().message;
    std::vector<DataAddress> found = now.ok() ? std::move(now.value()) : std::vector<DataAddress>();
    if (found == last_ && problem == problem_) return found;
    std::string list;
    for (const DataAddress& one : found) list += (list.empty() ? "" : ", ") + one.host;
    log_info("node: addresses for links between ranks are now {}{}",
             list.empty() ? "those of the nodes" : list, problem.empty() ? "" : ": " + problem);
    last_ = found;
    problem_ = problem;
    return found;
  }

 private:
  DataNetworks networks_;
  std::vector<DataAddress> last_;
  std::string problem_;
};

}  // namespace

struct ClusterNode::Impl {
  Impl(ClusterNodeOptions chosen, FetchSettings fetching);
  Status open();
  void close();
  void drain(milliseconds limit);
  Result<ClusterDriver::Options> driver_options(const MeasuredSpeed& speed) const;
  Result<DataPaths> data_paths_to(const NodeId& node) const;
  void open_desk();
  bool needs(const ModelId& id) const;
  void connect();
  void on_stream(const NodeId& from, const Channel& channel, FrameConnection connection);

  const ClusterNodeOptions options;
  const FetchSettings settings;
  const NodeId self;
  const std::unique_ptr<EventLoop> loop = EventLoop::start();
  const std::shared_ptr<ClusterModels> models;
  ClusterPlanner planner;
  std::unique_ptr<ClusterParts> parts;
  std::unique_ptr<ClusterDriver> driver;
  std::unique_ptr<PeersNetwork> network;
  std::unique_ptr<ModelFetcher> fetcher;
  std::unique_ptr<ModelDesk> desk;
  bool is_open = false;  // the loop's thread
  DrainWait drain_wait;
};

ClusterNode::Impl::Impl(ClusterNodeOptions chosen, FetchSettings fetching)
    : options(std::move(chosen)),
      settings(std::move(fetching)),
      self(options.identity.id()),
      models(std::make_shared<ClusterModels>(*loop)),
      planner([own = settings, weak = std::weak_ptr(models)](const std::string& model) {
        return path_for_plan(model, own, weak);
      }),
      parts(std::make_unique<ClusterParts>(
          *loop, ClusterParts::Options{
                     .self = self,
                     .link = options.link,
                     .command = {.cache = options.disk_cache, .device = options.device}})) {}

Result<ClusterDriver::Options> ClusterNode::Impl::driver_options(const MeasuredSpeed& speed) const {
  ClusterDriver::Options driver_options;
  driver_options.peers = options.peers;
  driver_options.peers.version = options.version;
  driver_options.folder = options.identity.cluster_folder();
  driver_options.power = options.power;
  driver_options.machine = options.machine;
  driver_options.brain.program = options.version;
  driver_options.brain.name = options.identity.name();
  driver_options.brain.budget_bytes = options.budget_bytes;
  driver_options.brain.is_spare = options.is_spare;
  driver_options.brain.speed = speed.read_bytes_s;
  driver_options.brain.operations_s = speed.operations_s;
  if (options.data_networks.is_empty()) {
    driver_options.brain.link_bytes_s = network_bytes_s(options.peers.host);
    return driver_options;
  }
  const std::vector<OwnAddress> all = own_addresses();
  const std::vector<DataAddress> announced = TRY(options.data_networks.own(all));
  const std::string ambiguity = options.data_networks.ambiguity(all);
  if (!ambiguity.empty()) log_warn("node: {}", ambiguity);
  driver_options.data_addresses = AnnouncedAddresses(options.data_networks, announced);
  driver_options.brain.link_bytes_s = slowest_bytes_s(announced);
  return driver_options;
}

// kPeerLost while that node has announced nothing yet.
Result<DataPaths> ClusterNode::Impl::data_paths_to(const NodeId& node) const {
  const Brain& brain = driver->brain();
  const Member* const member = brain.membership().find(node);
  const DataNode own{self, options.identity.name(), brain.data_addresses()};
  if (member == nullptr || member->last == nullptr) {
    if (options.data_networks.is_empty()) return DataPaths{};
    return Error{ErrorCode::kPeerLost,
                 "node " + driver->peers().name_of(node) + " has not said its addresses yet"};
  }
  const DataNode peer{node, driver->peers().name_of(node), member->last->data_addresses};
  return paths_between(options.data_networks, own, peer, own_address_towards);
}

Status ClusterNode::Impl::open() {
  TRY(make_private_folder(options.identity.cluster_folder()));
  const MeasuredSpeed speed = options.speed ? *options.speed : speed_of_this_machine();
  driver = TRY(ClusterDriver::start(
      *loop, options.identity, TRY(driver_options(speed)), planner.function(), *parts,
      {.on_change = [this] { models->update(); },
       .on_restart = options.on_restart,
       .on_stream =
           [this](const NodeId& from, const Channel& channel, FrameConnection connection) {
             on_stream(from, channel, std::move(connection));
           }}));
  network = std::make_unique<PeersNetwork>(driver->peers());
  fetcher = std::make_unique<ModelFetcher>(*loop, *network, self, settings);
  open_desk();
  planner.set_on_facts(driver->plan_again_call());
  return loop->run_and_wait([this] { connect(); });
}

void ClusterNode::Impl::open_desk() {
  desk = std::make_unique<ModelDesk>(
      ModelDesk::Surroundings{.loop = *loop,
                              .network = *network,
                              .fetcher = *fetcher,
                              .self = self,
                              .hub = settings.hub,
                              .home = settings.home,
                              .is_used = [this](const ModelId& id) { return needs(id); }});
}

// On the loop's thread.
bool ClusterNode::Impl::needs(const ModelId& id) const {
  for (const auto& [name, entry] : driver->brain().desired().entries()) {
    if (!entry.wanted) continue;
    if (is_read_from(entry.path, id) || is_read_from(entry.draft_model, id)) return true;
  }
  return std::any_of(options.models_here.begin(), options.models_here.end(),
                     [&](const std::string& model) { return is_read_from(model, id); });
}

void ClusterNode::Impl::connect() {
  parts->connect(
      {.peers = driver->peers(),
       .fetcher = *fetcher,
       .data_paths_to = [this](const NodeId& node) { return data_paths_to(node); },
       .on_event = [this](const std::string& model, const PlacementEpoch& epoch,
                          const PartEvent& event) { driver->part_event(model, epoch, event); },
       .on_change = [this] { models->update(); }});
  models->connect({.self = self, .driver = *driver, .parts = *parts, .fetcher = *fetcher});
  is_open = true;
}

// Other nodes may call before everything is ready; they retry.
void ClusterNode::Impl::on_stream(const NodeId& from, const Channel& channel,
                                  FrameConnection connection) {
  if (!is_open) return connection.close();
  if (channel.kind == kWorkerChannel) return parts->on_stream(from, channel, std::move(connection));
  if (channel.kind == kRequestStream) return models->on_stream(channel, std::move(connection));
  if (channel.kind == kPieceChannel) {
    return fetcher->on_stream(from, channel, std::move(connection));
  }
  if (channel.kind == kDiskChannel) return desk->on_stream(std::move(connection));
  connection.close();
}

// The others place this node's models again, and send their requests there.
void ClusterNode::Impl::drain(milliseconds limit) {
  const Status left = loop->run_and_wait([this] { driver->leave(); });
  if (!left.ok()) return log_warn("node: cannot leave the cluster: {}", left.error().message);
  drain_wait.wait(limit, [this]() -> Result<size_t> {
    size_t streams = 0;
    TRY(loop->run_and_wait([&] { streams = models->stream_count(); }));
    return streams;
  });
}

// Downloads and groups end while the other nodes can still be notified.
void ClusterNode::Impl::close() {
  loop->must_run([this] {
    is_open = false;
    if (driver) driver->leave();
    models->close();
    parts->disconnect();
  });
  desk.reset();
  fetcher.reset();
  network.reset();
  parts->end_groups();
  driver.reset();
}

Result<std::unique_ptr<ClusterNode>> ClusterNode::start(ClusterNodeOptions options) {
  FetchSettings settings;
  settings.hub = TRY(hub_settings_from_environment());
  settings.home = options.identity.folder();
  settings.keeps_shares = options.keeps_shares;
  auto impl = std::make_unique<Impl>(std::move(options), std::move(settings));
  std::unique_ptr<ClusterNode> node(new ClusterNode(std::move(impl)));
  TRY(node->impl_->open());
  return node;
}

ClusterNode::ClusterNode(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

ClusterNode::~ClusterNode() {
  impl_->close();
}

ClusterControl& ClusterNode::control() {
  return *impl_->driver;
}
std::shared_ptr<ModelDirectory> ClusterNode::models() {
  return impl_->models;
}
ModelDesk& ClusterNode::desk() {
  return *impl_->desk;
}
uint16_t ClusterNode::control_port() const {
  return impl_->driver->peers().port();
}
void ClusterNode::drain(milliseconds limit) {
  impl_->drain(limit);
}
void ClusterNode::stop() {
  impl_->drain_wait.stop();
}

}  // namespace lockstep
