#include "node/cluster/cluster_models.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/threads/guarded.h"
#include "node/requests/local_route.h"
#include "node/requests/request_channel.h"
#include "node/requests/stream_route.h"

namespace lockstep {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kRouteRetry{100};
constexpr milliseconds kFetchRetry{5'000};
constexpr milliseconds kUsePeriod{1'000};
// A model that cannot be placed for this long is refused; until then nodes may still be meeting.
constexpr milliseconds kRefusalAfter{5'000};

}  // namespace

void ClusterModels::connect(const Surroundings& surroundings) {
  around_ = std::make_unique<Surroundings>(surroundings);
  copies_ = std::make_unique<ModelCopies>(loop_, surroundings.fetcher);
  if (surroundings.fetcher.keeps_shares()) {
    shares_ = std::make_unique<ShareCopies>(loop_, surroundings.fetcher, [this] { update(); });
  }
  update();
}

void ClusterModels::cancel_fetches(const Item& item) {
  for (const uint64_t fetch : {item.fetch, item.table_fetch}) {
    if (fetch != 0 && around_) around_->fetcher.cancel(fetch);
  }
}

void ClusterModels::close() {
  use_timer_.cancel();
  if (copies_) copies_->keep({});
  if (shares_) shares_->keep({});
  streams_.clear();
  for (auto& [name, item] : items_) {
    cancel_fetches(item);
    if (item.model) item.model->close();
  }
  items_.clear();
  around_.reset();
  offered_.publish({}, {});
}

void ClusterModels::update() {
  if (!around_) return;
  const DesiredState& desired = around_->driver.brain().desired();
  drop_unwanted(desired);
  for (const auto& [name, entry] : desired.entries()) {
    if (!entry.wanted) continue;
    const auto [found, is_new] = items_.try_emplace(name);
    take_entry(found->second, entry);
    if (is_new) fetch(name);
    if (found->second.model) lead(name, found->second);
    const auto groups = static_cast<int64_t>(found->second.routes.size());
    const bool is_placed = groups >= entry.promises.replicas;
    if (!is_placed && around_->driver.brain().coordinator() == around_->self) {
      fetch_for_planning(name, found->second);
    }
  }
  publish();
  keep_used();
  keep_copies();
}

// A new draft model means a new placement, but no end of requests.
void ClusterModels::take_entry(Item& item, const DesiredEntry& entry) {
  const bool is_same = item.entry.draft_model == entry.draft_model;
  item.entry = entry;
  if (is_same) return;
  if (item.table_fetch != 0) around_->fetcher.cancel(std::exchange(item.table_fetch, 0));
  item.is_draft_model_here = false;
  if (!entry.draft_model.empty()) around_->fetcher.offer(entry.draft_model);
}

// Copies serving models only, so loading comes first; several groups are copies of each other.
void ClusterModels::keep_copies() {
  std::set<NodeId> alive{around_->self};
  for (const auto& [id, member] : around_->driver.brain().membership().members()) {
    if (member.is_alive()) alive.insert(id);
  }
  std::set<std::string> paths;
  std::map<std::string, RankPlan> plans;
  for (const auto& [name, item] : items_) {
    if (item.routes.size() != 1) continue;
    const ServingPlacement& only = item.routes.begin()->second.placement;
    plans[item.entry.path] = only.plan;
    if (copy_keeper(only.plan.ranks, alive) != around_->self) continue;
    if (!item.entry.draft_model.empty()) paths.insert(item.entry.draft_model);
    if (!shares_ || shares_->is_kept_whole(item.entry.path)) paths.insert(item.entry.path);
  }
  copies_->keep(paths);
  if (shares_) shares_->keep(plans);
}

// A model loaded on demand stays while it answers.
void ClusterModels::keep_used() {
  bool is_any = false;
  for (auto& [name, item] : items_) {
    if (item.entry.promises.idle_unload_s == 0 || !item.model) continue;
    is_any = true;
    keep_item(item, name);
  }
  if (is_any) {
    use_timer_ = loop_.call_after(kUsePeriod, [this] { keep_used(); });
  } else {
    use_timer_.cancel();
  }
}

void ClusterModels::keep_item(Item& item, const std::string& name) {
  if (item.model->status().running > 0) return around_->driver.model_used(name);
  const auto keep_ms = std::exchange(item.keep_ms, std::nullopt);
  if (keep_ms) around_->driver.model_kept(name, *keep_ms);
}

// Ends the keep-alive time set by an earlier request.
void ClusterModels::use(const std::string& name) {
  if (!around_) return;
  const auto item = items_.find(name);
  if (item != items_.end()) item->second.keep_ms.reset();
  around_->driver.model_used(name);
}

// With other answers it is a new model, and its requests end.
void ClusterModels::drop_unwanted(const DesiredState& desired) {
  for (auto item = items_.begin(); item != items_.end();) {
    const DesiredEntry* entry = desired.find(item->first);
    if (entry && entry->wanted && entry->has_answers_of(item->second.entry)) {
      ++item;
      continue;
    }
    cancel_fetches(item->second);
    if (item->second.model) item->second.model->close();
    item = items_.erase(item);
  }
}

// For the entry that made the request: its name may now mean another model.
bool ClusterModels::is_meant(const std::string& name, const std::string& path) const {
  const auto found = items_.find(name);
  return found != items_.end() && found->second.entry.reads(path);
}

// The small files are enough to answer clients.
void ClusterModels::fetch(const std::string& name) {
  Item& item = items_.find(name)->second;
  const std::string path = item.entry.path;
  around_->fetcher.offer(path);
  item.fetch = around_->fetcher.fetch_small(
      path, {.on_progress = {}, .on_done = [this, name, path](Result<FetchedModel> fetched) {
               if (!is_meant(name, path)) return;
               items_.find(name)->second.fetch = 0;
               if (!fetched.ok()) return on_problem(name, fetched.error().message);
               read(name, path, fetched.value().path);
             }});
}

// The coordinator plans by the table of the weights, which is in the weights' files, and by those
// of the draft model.
void ClusterModels::fetch_for_planning(const std::string& name, Item& item) {
  if (item.table_fetch != 0) return;
  const std::string& path = item.entry.path;
  const std::string& draft_model = item.entry.draft_model;
  if (!item.is_table_here) {
    item.table_fetch =
        around_->fetcher.fetch_table(path, planning_events(name, path, &Item::is_table_here));
  } else if (!draft_model.empty() && !item.is_draft_model_here) {
    item.table_fetch = around_->fetcher.fetch(
        draft_model, planning_events(name, draft_model, &Item::is_draft_model_here));
  }
}

ModelFetcher::Events ClusterModels::planning_events(const std::string& name,
                                                    const std::string& path, bool Item::*is_here) {
  return {.on_progress = {}, .on_done = [this, name, path, is_here](Result<FetchedModel> fetched) {
            if (!is_meant(name, path)) return;
            Item& item = items_.find(name)->second;
            item.table_fetch = 0;
            item.*is_here = fetched.ok();
            if (fetched.ok()) return fetch_for_planning(name, item);
            item.problem = fetched.error().message;
            publish();
            item.retry = loop_.call_after(kFetchRetry, [this] { update(); });
          }};
}

// Some tokenizers take a tenth of a second to read.
void ClusterModels::read(const std::string& name, const std::string& path,
                         const std::filesystem::path& folder) {
  const bool is_taken = disk_.post([weak = weak_from_this(), loop = &loop_, name, path,
                                    folder]() -> DiskThread::Then {
    auto read =
        std::make_shared<Result<ModelFolder>>(guarded([&] { return read_model_folder(folder); }));
    return [weak, loop, name, path, read] {
      loop->post([weak, name, path, read] {
        if (const auto self = weak.lock()) self->on_folder(name, path, std::move(*read));
      });
    };
  });
  if (!is_taken) on_problem(name, "too many models are being read");
}

void ClusterModels::on_folder(const std::string& name, const std::string& path,
                              Result<ModelFolder> folder) {
  if (!is_meant(name, path)) return;
  Item& item = items_.find(name)->second;
  if (item.model) return;
  if (!folder.ok()) return on_problem(name, folder.error().message);
  RoutedModelOptions options;
  options.name = name;
  options.on_route_lost = [this, name](uint64_t route, const Error&) {
    on_route_lost(name, route);
  };
  item.problem.clear();
  item.model = RoutedModel::make(loop_, std::move(folder.value()), std::move(options));
  update();
}

void ClusterModels::on_problem(const std::string& name, const std::string& why) {
  const auto found = items_.find(name);
  if (found == items_.end()) return;
  found->second.problem = why;
  found->second.retry = loop_.call_after(kFetchRetry, [this, name] {
    if (items_.contains(name)) fetch(name);
  });
  publish();
}

// Routes to the groups that serve now; removes routes to others.
void ClusterModels::lead(const std::string& name, Item& item) {
  const auto serving = serving_placements(around_->driver.brain(), around_->self, item.entry,
                                          static_cast<size_t>(item.entry.promises.replicas));
  for (auto group_route = item.routes.begin(); group_route != item.routes.end();) {
    const bool serves =
        std::find(serving.begin(), serving.end(), group_route->second.placement) != serving.end();
    if (serves) {
      ++group_route;
      continue;
    }
    const uint64_t route = group_route->second.route;
    group_route = item.routes.erase(group_route);
    item.model->drop_route(route, {ErrorCode::kPeerLost, "the model is being placed again"});
  }
  if (serving.empty()) return show_waiting(name, item);
  item.refusal.cancel();
  item.sentence.clear();
  for (const ServingPlacement& placement : serving) {
    const auto [group_route, is_new] = item.routes.try_emplace(placement.epoch);
    if (!is_new) continue;
    group_route->second = {.placement = placement, .attempt = ++last_attempt_};
    placement.owner == around_->self ? route_locally(name, item, group_route->second)
                                     : route_remotely(name, group_route->second);
  }
}

void ClusterModels::route_locally(const std::string& name, Item& item, GroupRoute& group_route) {
  const PlacementEpoch epoch = group_route.placement.epoch;
  const std::shared_ptr<GroupSupervisor> group = around_->parts.group(name, epoch);
  if (!group) return retry_route(name, epoch);
  group_route.route = item.model->add_route(epoch, [this, group](RouteEvents events) {
    return make_local_route(loop_, group, std::move(events));
  });
}

void ClusterModels::route_remotely(const std::string& name, const GroupRoute& group_route) {
  const auto channel = request_channel({name, group_route.placement.epoch});
  if (!channel.ok()) return on_problem(name, channel.error().message);
  around_->driver.peers().open_stream(
      group_route.placement.owner, channel.value(),
      [weak = weak_from_this(), name, meant = group_route](Result<FrameConnection> stream) {
        if (const auto self = weak.lock())
          return self->on_route_open(name, meant, std::move(stream));
        if (stream.ok()) stream.value().close();
      });
}

void ClusterModels::on_route_open(const std::string& name, const GroupRoute& meant,
                                  Result<FrameConnection> stream) {
  const auto item = items_.find(name);
  GroupRoute* group_route = nullptr;
  if (item != items_.end()) {
    const auto found = item->second.routes.find(meant.placement.epoch);
    const bool is_meant =
        found != item->second.routes.end() && found->second.attempt == meant.attempt;
    if (is_meant) group_route = &found->second;
  }
  if (group_route == nullptr) {
    if (stream.ok()) stream.value().close();
    return;
  }
  if (!stream.ok()) return retry_route(name, meant.placement.epoch);
  group_route->route = item->second.model->add_route(
      meant.placement.epoch,
      [this, connection = std::move(stream.value())](RouteEvents events) mutable {
        return make_stream_route(loop_, std::move(connection), std::move(events));
      });
}

void ClusterModels::on_route_lost(const std::string& name, uint64_t route) {
  const auto item = items_.find(name);
  if (item == items_.end()) return;
  for (const auto& [epoch, group_route] : item->second.routes) {
    if (group_route.route == route) return retry_route(name, PlacementEpoch(epoch));
  }
}

void ClusterModels::retry_route(const std::string& name, const PlacementEpoch& epoch) {
  const auto found = items_.find(name);
  if (found == items_.end()) return;
  found->second.routes.erase(epoch);
  found->second.retry = loop_.call_after(kRouteRetry, [this] { update(); });
}

// Shows the coordinator's report of a model that no group serves.
void ClusterModels::show_waiting(const std::string& name, Item& item) {
  ModelStatus status;
  status.state = ModelStatus::State::kLoading;
  std::string sentence;
  bool is_coming = false;  // one group is enough to serve
  for (const ModelProgress& progress : around_->driver.brain().progress()) {
    if (progress.model != name) continue;
    status.last_error = progress.sentence;
    sentence = progress.sentence;
    is_coming = is_coming || progress.phase != ModelPhase::kWaiting;
  }
  if (is_coming) sentence.clear();
  item.model->set_status(std::move(status));
  if (item.sentence == sentence) return;
  item.sentence = sentence;
  item.model->set_refusal("");
  if (sentence.empty()) return item.refusal.cancel();
  item.refusal = loop_.call_after(kRefusalAfter, [this, name, sentence] {
    const auto found = items_.find(name);
    if (found == items_.end() || found->second.sentence != sentence) return;
    found->second.model->set_refusal(sentence);
  });
}

void ClusterModels::on_stream(const Channel& channel, FrameConnection connection) {
  const auto purpose = parse_request_purpose(channel.purpose);
  const std::shared_ptr<GroupSupervisor> group =
      around_ && purpose.ok() ? around_->parts.group(purpose.value().model, purpose.value().epoch)
                              : nullptr;
  if (!group || streams_.size() >= kStreamsMax) return connection.close();
  const uint64_t number = next_number_++;
  streams_[number] =
      std::make_unique<RequestStreamHost>(loop_, std::move(connection), group,
                                          [this, number](const Error&) { streams_.erase(number); });
}

void ClusterModels::publish() {
  OfferedModels::Offers offers;
  for (const auto& [name, item] : items_) offers[name] = {item.model, item.problem};
  offered_.publish(around_->driver.brain().desired(), std::move(offers));
}

std::string ClusterModels::problem_of(const std::string& path) const {
  return offered_.problem_of(path);
}

std::vector<std::shared_ptr<ModelService>> ClusterModels::models() const {
  return offered_.models();
}

void ClusterModels::await_files(std::string_view name, milliseconds patience) const {
  offered_.await_files(name, patience);
}

Result<std::shared_ptr<ModelService>> ClusterModels::find(std::string_view name) {
  const std::string model = TRY(offered_.name_of(name));
  loop_.post([weak = weak_from_this(), model] {
    if (const auto self = weak.lock()) self->use(model);
  });
  return offered_.service_of(model);
}

bool ClusterModels::is_on_demand(std::string_view name) const {
  return offered_.is_on_demand(name);
}

void ClusterModels::keep(std::string_view name, milliseconds time) {
  loop_.post([weak = weak_from_this(), model = std::string(name), time] {
    const auto self = weak.lock();
    if (!self) return;
    const auto item = self->items_.find(model);
    if (item == self->items_.end() || item->second.entry.promises.idle_unload_s == 0) return;
    item->second.keep_ms = time.count();
  });
}

}  // namespace lockstep
