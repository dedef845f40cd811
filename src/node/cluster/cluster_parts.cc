#include "node/cluster/cluster_parts.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "model/load/open_model.h"
#include "node/cluster/cluster_plan.h"
#include "node/worker/remote_workers.h"

namespace lockstep {
namespace {

using std::chrono::milliseconds;

// Nodes that have just met may not be fully connected yet.
constexpr milliseconds kRetryPause{200};
constexpr int kRetriesMax = 25;
constexpr milliseconds kStopTimeout{200};

bool is_on_one_machine(const PlacementShare& report) {
  return std::all_of(report.ranks.begin(), report.ranks.end(),
                     [&](const RankPart& rank) { return rank.node == report.ranks.front().node; });
}

// The options for the group of a placement. Reads the head of the model's files.
Result<GroupSupervisorOptions> group_options(const DesiredEntry& entry,
                                             const PlacementShare& report, const LocalPaths& files,
                                             const LinkOptions& link) {
  const OpenedModel model = TRY(open_model(files.model, PartialFiles::kTables));
  const PlannedLimits limits = TRY(planned_limits(model.config, entry.promises));
  GroupSupervisorOptions options;
  options.name = entry.name;
  GroupSpec& spec = options.spec;
  spec.model = files.model;
  spec.draft_model = files.draft_model;
  spec.shares.clear();
  for (const RankPart& rank : report.ranks) {
    spec.shares.push_back(static_cast<double>(rank.share));
  }
  spec.link = is_on_one_machine(report) ? LinkOptions{} : link;
  spec.link.stages = static_cast<int>(report.stages);
  spec.context = limits.context;
  spec.sequences_max = limits.streams;
  spec.kv = limits.kv;
  spec.ngrams_on_disk = entry.promises.ngrams_on_disk;
  spec.draft_layer = true;
  // A stop follows a loss, mostly of a rank that cannot answer; requests continue elsewhere.
  options.stop_timeout = kStopTimeout;
  options.restart_wait = options.resume_wait;  // a refusal would count as another loss
  return options;
}

bool is_ipv6(const std::string& host) {
  return host.find(':') != std::string::npos;
}

bool has_any(const std::vector<DataPaths>& paths) {
  return std::any_of(paths.begin(), paths.end(),
                     [](const DataPaths& one) { return one != DataPaths{}; });
}

}  // namespace

ClusterParts::ClusterParts(EventLoop& loop, Options options)
    : loop_(loop),
      options_(std::move(options)),
      host_(std::make_unique<WorkerHost>(loop, options_.command)) {}

ClusterParts::~ClusterParts() = default;

void ClusterParts::connect(Surroundings surroundings) {
  around_ = std::make_unique<Surroundings>(std::move(surroundings));
  std::vector<Name> names;
  for (const auto& [name, part] : parts_) names.push_back(name);
  for (const Name& name : names) fetch(name);
}

void ClusterParts::disconnect() {
  for (auto& [name, part] : parts_) {
    part.retry.cancel();
    if (part.fetch != 0 && around_) around_->fetcher.cancel(part.fetch);
    if (!part.led) continue;
    part.led->silence();
    part.led->stop();  // all in parallel
    ending_.push_back(std::move(part.led));
  }
  parts_.clear();
  host_.reset();
  around_.reset();
}

void ClusterParts::end_groups() {
  ending_.clear();
}

void ClusterParts::start_part(const DesiredEntry& entry, const PlacementShare& report) {
  if (!host_) return;
  const Name name{report.model, report.epoch};
  if (!parts_.try_emplace(name, Part{.entry = entry, .report = report}).second) return;
  if (around_) fetch(name);
}

void ClusterParts::fetch(const Name& name) {
  Part& part = parts_.at(name);
  part.fetch = around_->fetcher.fetch_reads(
      part.entry.path, {part.report.ranks, part.report.stages},
      fetch_events(name, &LocalPaths::model, &ClusterParts::fetch_draft_model));
}

// A smaller one, which every node of the placement has whole.
void ClusterParts::fetch_draft_model(const Name& name) {
  Part& part = parts_.at(name);
  if (part.entry.draft_model.empty()) return prepare(name);
  part.fetch = around_->fetcher.fetch(
      part.entry.draft_model, fetch_events(name, &LocalPaths::draft_model, &ClusterParts::prepare));
}

ModelFetcher::Events ClusterParts::fetch_events(const Name& name, std::string LocalPaths::*path,
                                                void (ClusterParts::*next)(const Name&)) {
  return {.on_progress = {}, .on_done = [this, name, path, next](Result<FetchedModel> fetched) {
            const auto found = parts_.find(name);
            if (found == parts_.end() || found->second.is_stopping) return;
            found->second.fetch = 0;
            if (!fetched.ok()) return failed(name, fetched.error().message);
            found->second.files.*path = fetched.value().path.string();
            (this->*next)(name);
          }};
}

void ClusterParts::prepare(const Name& name) {
  Part& part = parts_.at(name);
  const Result<MachineHosts> hosts = machine_hosts(part.report);
  if (!hosts.ok()) {
    if (++part.retries > kRetriesMax) return failed(name, hosts.error().message);
    part.retry = loop_.call_after(kRetryPause, [this, name] { prepare(name); });
    return;
  }
  if (part.report.ranks.front().node == options_.self) return lead(name, part, hosts.value());
  const Status allowed = host_->allow({.model = name.first,
                                       .epoch = name.second,
                                       .leader = part.report.ranks.front().node,
                                       .files = part.files,
                                       .hosts = hosts.value()});
  allowed.ok() ? ready(name) : failed(name, allowed.error().message);
}

// The addresses at which this machine reaches those of the other ranks. A rank calls those with
// lower numbers, so of two machines the one that calls decides on the network.
Result<MachineHosts> ClusterParts::machine_hosts(const PlacementShare& report) const {
  MachineHosts machine;
  const std::vector<Peer> connected = around_->peers.report().connected;
  bool has_ipv6 = false;
  for (const RankPart& rank : report.ranks) {
    machine.hosts.emplace_back();
    machine.paths.emplace_back();
    if (rank.node == options_.self) {
      machine.ranks.push_back(static_cast<int>(machine.hosts.size()) - 1);
      continue;
    }
    const auto peer = std::find_if(connected.begin(), connected.end(),
                                   [&](const Peer& each) { return each.id == rank.node; });
    if (peer == connected.end()) {
      return Error{ErrorCode::kPeerLost, fmt::format("there is no connection to node {}",
                                                     around_->peers.name_of(rank.node))};
    }
    machine.hosts.back() = peer->address.host;
    machine.paths.back() = TRY(around_->data_paths_to(rank.node));
    has_ipv6 = has_ipv6 || is_ipv6(peer->address.host);
    for (const DataPath& path : machine.paths.back().paths) {
      has_ipv6 = has_ipv6 || is_ipv6(path.own);
    }
  }
  if (!has_any(machine.paths)) machine.paths.clear();
  for (const int rank : machine.ranks) {
    machine.hosts[static_cast<size_t>(rank)] = has_ipv6 ? "::" : "0.0.0.0";
  }
  return machine;
}

void ClusterParts::lead(const Name& name, Part& part, const MachineHosts& hosts) {
  const std::shared_ptr<WorkerPlaces> places =
      cluster_worker_places(loop_, around_->peers, places_of(part, hosts));
  auto make_options = [entry = part.entry, report = part.report, files = part.files,
                       link = options_.link, places]() -> Result<GroupSupervisorOptions> {
    GroupSupervisorOptions options = TRY(group_options(entry, report, files, link));
    options.places = places;
    return options;
  };
  part.led = LedGroup::start(
      loop_, std::move(make_options),
      {.on_ready = [this, name] { ready(name); },
       .on_failed = [this, name](const Error& error) { failed(name, error.message); },
       .on_stopped = [this, name] { stopped(name); }});
}

ClusterPlacesOptions ClusterParts::places_of(const Part& part, const MachineHosts& hosts) const {
  ClusterPlacesOptions options{.own = options_.self,
                               .model = part.report.model,
                               .epoch = part.report.epoch,
                               .files = part.files,
                               .hosts = hosts,
                               .command = options_.command};
  for (const RankPart& rank : part.report.ranks) {
    options.ranks.push_back({.node = rank.node, .name = around_->peers.name_of(rank.node)});
  }
  return options;
}

void ClusterParts::ready(const Name& name) {
  const auto found = parts_.find(name);
  if (found == parts_.end() || found->second.is_stopping || !around_) return;
  if (!std::exchange(found->second.is_ready, true)) {
    around_->on_event(name.first, name.second, {PartEvent::Kind::kReady, ""});
  }
  around_->on_change();
}

// A failed part has released everything before the cluster hears of it.
void ClusterParts::failed(const Name& name, const std::string& reason) {
  const auto found = parts_.find(name);
  if (found == parts_.end() || found->second.is_stopping || !around_) return;
  if (found->second.led) {
    // Its thread only has to report that it has ended.
    found->second.is_stopping = true;
    found->second.failure = reason;
    found->second.led->stop();
    return;
  }
  parts_.erase(found);
  around_->on_event(name.first, name.second, {PartEvent::Kind::kFailed, reason});
}

void ClusterParts::stop_part(const std::string& model, const PlacementEpoch& epoch) {
  if (!host_) return;
  const Name name{model, epoch};
  const auto found = parts_.find(name);
  if (found == parts_.end()) {
    if (around_) around_->on_event(model, epoch, {PartEvent::Kind::kStopped, ""});
    return;
  }
  Part& part = found->second;
  part.failure.clear();
  part.is_stopping = true;
  part.retry.cancel();
  if (part.fetch != 0) around_->fetcher.cancel(std::exchange(part.fetch, 0));
  if (part.led) {
    part.led->stop();
    if (around_) around_->on_change();
  } else {
    host_->forbid(model, epoch, [this, name] { stopped(name); });
  }
}

void ClusterParts::stopped(const Name& name) {
  auto part = parts_.extract(name);
  if (part.empty() || !around_) return;
  const std::string& failure = part.mapped().failure;
  const PartEvent::Kind kind =
      failure.empty() ? PartEvent::Kind::kStopped : PartEvent::Kind::kFailed;
  around_->on_event(name.first, name.second, {kind, failure});
  around_->on_change();
}

std::shared_ptr<GroupSupervisor> ClusterParts::group(const std::string& model,
                                                     const PlacementEpoch& epoch) const {
  const auto found = parts_.find({model, epoch});
  const bool serves = found != parts_.end() && found->second.is_ready &&
                      !found->second.is_stopping && found->second.led;
  return serves ? found->second.led->group() : nullptr;
}

std::vector<LoadProgress> ClusterParts::loads() const {
  std::vector<LoadProgress> loads;
  for (const auto& [name, part] : parts_) {
    const auto group = part.led && !part.is_stopping ? part.led->group() : nullptr;
    const auto loading = group ? group->status().loading : std::nullopt;
    const bool is_number = loading && loading->whole_bytes <= uint64_t{INT64_MAX};
    if (!is_number || loads.size() >= kPartsMax) continue;
    loads.push_back({.model = name.first,
                     .epoch = name.second,
                     .read_bytes = static_cast<int64_t>(loading->read_bytes),
                     .whole_bytes = static_cast<int64_t>(loading->whole_bytes),
                     .bytes_s = std::llround(loading->bytes_s)});
  }
  return loads;
}

int ClusterParts::running() const {
  int count = 0;
  for (const auto& [name, part] : parts_) {
    if (part.led && part.led->group()) count += part.led->group()->status().running;
  }
  return count;
}

void ClusterParts::on_stream(const NodeId& from, const Channel& channel,
                             FrameConnection connection) {
  if (!host_) return connection.close();
  host_->on_stream(from, channel, std::move(connection));
}

}  // namespace lockstep
