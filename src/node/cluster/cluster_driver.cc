#include "node/cluster/cluster_driver.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/check.h"
#include "base/crypto/secrets.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/machine/power_meter.h"
#include "base/threads/guarded.h"
#include "cluster/join/join_token.h"
#include "cluster/state/desired_store.h"
#include "node/cluster/cluster_report.h"
#include "node/worker/disk_thread.h"

namespace lockstep {
namespace {

constexpr int64_t kLookAroundPeriodMs = 1'000;
constexpr int64_t kComplaintPeriodMs = 60'000;
constexpr int64_t kUsePeriodMs = 500;

// Another thread's call that waits for the disk.
struct Waiter {
  std::mutex mutex;
  std::condition_variable changed;
  std::optional<Status> status;

  void answer(Status given) {
    const std::lock_guard lock(mutex);
    if (!status) status = std::move(given);
    changed.notify_all();
  }
};

ClusterTime cluster_time() {
  using std::chrono::milliseconds;
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  const auto wall = std::chrono::system_clock::now().time_since_epoch();
  return {now / milliseconds(1), std::max<int64_t>(0, wall / milliseconds(1))};
}

Result<int64_t> random_incarnation() {
  std::array<std::byte, 8> bytes{};
  TRY(fill_random(bytes));
  uint64_t value = 0;
  std::memcpy(&value, bytes.data(), bytes.size());
  return static_cast<int64_t>(value >> 1);
}

Error stopping() {
  return {ErrorCode::kCancelled, "this node is stopping"};
}

// The state that on_change reports: compared before and after each event.
uint64_t state_key(const Brain& brain) {
  Fnv key;
  const auto add = [&key](uint64_t value) { key.add(value); };
  add(static_cast<uint64_t>(brain.desired().digest()));
  add(std::hash<NodeId>()(brain.coordinator()));
  add(static_cast<uint64_t>(brain.parts().revision()));
  for (const ModelProgress& progress : brain.progress()) {
    key.add(progress.model);
    add(static_cast<uint64_t>(progress.phase));
    key.add(progress.sentence);
  }
  for (const auto& [id, member] : brain.membership().members()) {
    add(std::hash<NodeId>()(id));
    add(static_cast<uint64_t>(member.state));
    if (member.last == nullptr) continue;
    for (const PlacementShare& part : member.last->parts) {
      key.add(part.model);
      add(static_cast<uint64_t>(part.epoch.counter));
      add(std::hash<NodeId>()(part.epoch.coordinator));
      add(static_cast<uint64_t>(part.epoch.incarnation));
      add(static_cast<uint64_t>(part.state));
    }
  }
  return key.value();
}

}  // namespace

// Belongs to the loop's thread. Posted work holds it weakly.
struct ClusterDriver::Impl : std::enable_shared_from_this<Impl> {
  Impl(EventLoop& own_loop, const Identity& own_identity, Options chosen, PartRunner& parts,
       Events handlers, DesiredStore::Opened opened, PlanFunction plan)
      : loop(own_loop),
        identity(own_identity),
        options(std::move(chosen)),
        runner(parts),
        events(std::move(handlers)),
        store(std::make_shared<DesiredStore>(std::move(opened.store))),
        brain(options.brain, std::move(opened.state), std::move(plan), cluster_time()),
        disk(std::make_unique<DiskThread>()) {}

  Peers::Events peers_events();
  void begin(std::unique_ptr<Peers> started);
  std::unique_ptr<Peers> stop();
  void tick();
  void look_around();
  void on_message(const NodeId& from, const std::string& text);
  void model_used(const std::string& model);
  void model_kept(const std::string& model, int64_t keep_ms);

  void perform(ClusterActions more);
  void act(SendAction& action);
  void act(StartPartAction& action) { runner.start_part(action.entry, action.part); }
  void act(StopPartAction& action) { runner.stop_part(action.model, action.epoch); }
  void act(PersistAction& action);
  void act(AnswerAction& action);
  void act(RestartAction& action);
  void act(NewsAction& action) { log_info("cluster: {}", action.sentence); }
  void note_change();

  // Any thread but the loop's: waits for the Brain's answer.
  using Request = std::function<ClusterActions(Brain&, int64_t request)>;
  Status request(const Request& call);

  template <class Call>
  void post_self(Call call) {
    loop.post([weak = weak_from_this(), call = std::move(call)] {
      if (const auto self = weak.lock()) call(*self);
    });
  }

  EventLoop& loop;
  Identity identity;
  Options options;
  PartRunner& runner;
  Events events;
  std::shared_ptr<DesiredStore> store;  // used only on `disk`
  Brain brain;
  std::unique_ptr<Peers> peers;  // null before begin() and after stop()
  std::unique_ptr<DiskThread> disk;
  EventLoop::Timer tick_timer;

  std::deque<ClusterAction> actions;
  bool is_acting = false;
  bool is_stopped = false;
  uint64_t key = 0;  // of the state that on_change last reported
  bool is_change_posted = false;
  std::shared_ptr<const ClusterMessage> encoded;  // the last one, often sent to many
  std::string encoded_text;
  std::map<int64_t, std::shared_ptr<Waiter>> waiters;
  int64_t last_request = 0;
  std::map<std::string, int64_t> used_told_ms;  // at most kDesiredNamesMax
  int64_t looked_around_ms = 0;
  int64_t unreadable_count = 0;
  int64_t unreadable_told_ms = 0;
  bool is_large_told = false;
};

Peers::Events ClusterDriver::Impl::peers_events() {
  const std::weak_ptr<Impl> weak = weak_from_this();
  Peers::Events made;
  made.on_connected = [weak](const Peer& peer) {
    const auto self = weak.lock();
    if (self) self->perform(self->brain.on_peer_connected(cluster_time(), peer.id));
  };
  made.on_lost = [weak](const NodeId& id, const Error&) {
    const auto self = weak.lock();
    if (self) self->perform(self->brain.on_peer_lost(cluster_time(), id));
  };
  made.on_message = [weak](const NodeId& id, const std::string& text) {
    if (const auto self = weak.lock()) self->on_message(id, text);
  };
  made.on_stream = events.on_stream;
  return made;
}

// Messages sent before this are lost, as on any network: heartbeats repeat them.
void ClusterDriver::Impl::begin(std::unique_ptr<Peers> started) {
  peers = std::move(started);
  tick();
}

std::unique_ptr<Peers> ClusterDriver::Impl::stop() {
  is_stopped = true;
  tick_timer.cancel();
  events = {};
  actions.clear();
  for (auto& [request, waiter] : std::exchange(waiters, {})) waiter->answer(stopping());
  return std::move(peers);
}

void ClusterDriver::Impl::tick() {
  if (is_stopped) return;
  look_around();
  perform(brain.on_tick(cluster_time()));
  tick_timer = loop.call_after(std::chrono::milliseconds(options.tick_ms), [this] { tick(); });
}

// The facts about this machine that heartbeats carry.
void ClusterDriver::Impl::look_around() {
  const int64_t now_ms = cluster_time().ms;
  if (looked_around_ms != 0 && now_ms - looked_around_ms < kLookAroundPeriodMs) return;
  looked_around_ms = now_ms;
  std::vector<RoundTrip> trips;
  for (const Peer& peer : peers->report().connected) {
    if (peer.round_trip.count() > 0 && trips.size() < kNodesMax) {
      trips.push_back({peer.id, peer.round_trip.count()});
    }
  }
  brain.set_round_trips(std::move(trips));
  brain.set_loads(runner.loads());
  if (options.machine) brain.set_meters(options.machine->meters());
  if (options.data_addresses) brain.set_data_addresses(options.data_addresses());
  if (options.power) brain.set_power_mw(std::llround(options.power->watts().value_or(0) * 1e3));
}

void ClusterDriver::Impl::on_message(const NodeId& from, const std::string& text) {
  auto message = decode_cluster_message(text);
  if (message.ok()) {
    auto shared = std::make_shared<const ClusterMessage>(std::move(message.value()));
    return perform(brain.on_message(cluster_time(), from, shared));
  }
  ++unreadable_count;
  const int64_t now_ms = cluster_time().ms;
  if (unreadable_count > 1 && now_ms - unreadable_told_ms < kComplaintPeriodMs) return;
  unreadable_told_ms = now_ms;
  log_warn("cluster: an invalid message from node {}: {} ({} so far)", from.short_text(),
           message.error().message, unreadable_count);
}

// Only for models loaded on demand, and rarely: the coordinator plans again after each.
void ClusterDriver::Impl::model_used(const std::string& model) {
  const DesiredEntry* entry = brain.desired().find(model);
  if (is_stopped || entry == nullptr || entry->promises.idle_unload_s == 0) return;
  const ClusterTime now = cluster_time();
  if (used_told_ms.size() > kDesiredNamesMax) used_told_ms.clear();
  const auto [item, is_new] = used_told_ms.try_emplace(model, now.ms);
  if (!is_new && now.ms - item->second < kUsePeriodMs) return;
  item->second = now.ms;
  perform(brain.on_model_used(now, model));
}

void ClusterDriver::Impl::model_kept(const std::string& model, int64_t keep_ms) {
  if (is_stopped) return;
  used_told_ms.erase(model);  // the next use counts at once
  perform(brain.on_model_kept(cluster_time(), model, keep_ms));
}

// Actions that follow from actions run after them, in order, never inside them.
void ClusterDriver::Impl::perform(ClusterActions more) {
  for (ClusterAction& action : more) actions.push_back(std::move(action));
  if (is_acting || is_stopped) return;
  is_acting = true;
  while (!actions.empty()) {
    ClusterAction action = std::move(actions.front());
    actions.pop_front();
    std::visit([this](auto& kind) { act(kind); }, action);
  }
  is_acting = false;
  note_change();
}

void ClusterDriver::Impl::act(SendAction& action) {
  if (!peers) return;
  if (encoded != action.message) {
    encoded = action.message;
    encoded_text = encode_cluster_message(*encoded);
  }
  if (encoded_text.size() <= Peers::kMessageBytesMax) return peers->send(action.to, encoded_text);
  if (std::exchange(is_large_told, true)) return;
  log_error("cluster: a message of {} bytes is not sent, the limit is {}: too much is loaded",
            encoded_text.size(), Peers::kMessageBytesMax);
}

void ClusterDriver::Impl::act(PersistAction& action) {
  const auto job = [revision = action.revision, state = action.state, disk_store = store,
                    weak = weak_from_this(), &own_loop = loop]() -> DiskThread::Then {
    Status status = guarded([&] { return disk_store->save(*state); });
    return [revision, status = std::move(status), weak, &own_loop] {
      own_loop.post([revision, status, weak] {
        const auto self = weak.lock();
        if (self) self->perform(self->brain.on_persisted(cluster_time(), revision, status));
      });
    };
  };
  if (disk->post(job)) return;
  post_self([revision = action.revision](Impl& self) {
    const Error refused{ErrorCode::kExhausted, "no thread can be started for this node's disk"};
    self.perform(self.brain.on_persisted(cluster_time(), revision, refused));
  });
}

void ClusterDriver::Impl::act(AnswerAction& action) {
  const auto found = waiters.find(action.request);
  if (found == waiters.end()) return;  // it has stopped waiting
  found->second->answer(std::move(action.status));
  waiters.erase(found);
}

void ClusterDriver::Impl::act(RestartAction&) {
  if (events.on_restart) events.on_restart();
}

void ClusterDriver::Impl::note_change() {
  const uint64_t now = state_key(brain);
  if (now == key || is_change_posted) return;
  is_change_posted = true;
  post_self([](Impl& self) {
    self.is_change_posted = false;
    self.key = state_key(self.brain);
    if (const auto told = self.events.on_change) told();
  });
}

Status ClusterDriver::Impl::request(const Request& call) {
  LOCKSTEP_CHECK(!loop.is_current_thread());
  const auto waiter = std::make_shared<Waiter>();
  post_self([call, waiter](Impl& self) {
    if (self.is_stopped) return waiter->answer(stopping());
    const int64_t number = ++self.last_request;
    self.waiters[number] = waiter;  // the Brain answers excess requests
    self.perform(call(self.brain, number));
  });
  std::unique_lock lock(waiter->mutex);
  if (waiter->changed.wait_for(lock, options.answer_timeout,
                               [&] { return waiter->status.has_value(); })) {
    return *waiter->status;
  }
  return Error{ErrorCode::kTimeout,
               fmt::format("this node's disk has not saved it within {:.1f} s; it may still do so",
                           static_cast<double>(options.answer_timeout.count()) / 1000)};
}

ClusterDriver::ClusterDriver(EventLoop& loop, std::shared_ptr<Impl> impl)
    : loop_(loop), impl_(std::move(impl)) {}

Result<std::unique_ptr<ClusterDriver>> ClusterDriver::start(EventLoop& loop,
                                                            const Identity& identity,
                                                            Options options, PlanFunction plan,
                                                            PartRunner& runner, Events events) {
  LOCKSTEP_CHECK(identity.cluster().has_value());
  options.brain.self = identity.id();
  options.brain.incarnation = TRY(random_incarnation());
  DesiredStore::Opened opened = TRY(DesiredStore::open(options.folder));
  for (const std::string& note : opened.notes) log_warn("cluster: {}", note);
  const Peers::Options peers_options = options.peers;
  auto impl = std::make_shared<Impl>(loop, identity, std::move(options), runner, std::move(events),
                                     std::move(opened), std::move(plan));
  // From here on the destructor ends it on the loop's thread, even when Peers cannot start.
  std::unique_ptr<ClusterDriver> driver(new ClusterDriver(loop, std::move(impl)));
  auto peers = TRY(Peers::start(loop, identity, peers_options, driver->impl_->peers_events()));
  TRY(loop.run_and_wait([&] { driver->impl_->begin(std::move(peers)); }));
  return driver;
}

ClusterDriver::~ClusterDriver() {
  LOCKSTEP_CHECK(!loop_.is_current_thread());
  std::unique_ptr<Peers> peers;
  loop_.must_run([&] { peers = impl_->stop(); });
  peers.reset();
  impl_->disk.reset();
  loop_.must_run([this] { impl_.reset(); });
}

void ClusterDriver::part_event(const std::string& model, const PlacementEpoch& epoch,
                               const PartEvent& event) {
  if (impl_->is_stopped) return;
  impl_->perform(impl_->brain.on_part_event(cluster_time(), model, epoch, event));
}

void ClusterDriver::leave() {
  impl_->perform(impl_->brain.leave(cluster_time()));
}

void ClusterDriver::model_used(const std::string& model) {
  impl_->model_used(model);
}

void ClusterDriver::model_kept(const std::string& model, int64_t keep_ms) {
  impl_->model_kept(model, keep_ms);
}

const Brain& ClusterDriver::brain() const {
  return impl_->brain;
}

Peers& ClusterDriver::peers() {
  LOCKSTEP_CHECK(impl_->peers != nullptr);
  return *impl_->peers;
}

std::function<void()> ClusterDriver::plan_again_call() const {
  return [weak = std::weak_ptr<Impl>(impl_), &loop = loop_] {
    loop.post([weak] {
      const auto self = weak.lock();
      if (self && !self->is_stopped) self->perform(self->brain.plan_again(cluster_time()));
    });
  };
}

ClusterReport ClusterDriver::report() const {
  ClusterReport report;
  const auto make = [&] {
    const Peers::Report peers = impl_->peers ? impl_->peers->report() : Peers::Report{};
    report = make_cluster_report(impl_->brain, impl_->options.brain, impl_->identity, peers,
                                 cluster_time().ms);
  };
  if (loop_.is_current_thread()) {
    make();
  } else if (const Status made = loop_.run_and_wait(make); !made.ok()) {
    log_warn("cluster: no report: {}", made.error().message);
  }
  return report;
}

Status ClusterDriver::load(DesiredEntry entry) {
  return impl_->request([entry = std::move(entry)](Brain& brain, int64_t request) {
    return brain.load(cluster_time(), request, entry);
  });
}

Status ClusterDriver::unload(std::string_view name) {
  return impl_->request([name = std::string(name)](Brain& brain, int64_t request) {
    return brain.unload(cluster_time(), request, name);
  });
}

Status ClusterDriver::restart(const NodeId& node) {
  return impl_->request([node](Brain& brain, int64_t request) {
    return brain.restart(cluster_time(), request, node);
  });
}

Result<std::string> ClusterDriver::make_join_token() {
  const auto until = std::chrono::system_clock::now() + kJoinTokenLifetime;
  const auto expires_s = until.time_since_epoch() / std::chrono::seconds(1);
  return TRY(lockstep::make_join_token(*impl_->identity.cluster(),
                                       static_cast<uint64_t>(expires_s)))
      .text();
}

}  // namespace lockstep
