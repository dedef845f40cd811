#include "server/operations/status_watch.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/threads/guarded.h"
#include "server/generation/api_context.h"
#include "server/operations/cluster_status.h"

namespace lockstep {
namespace {

// Values that move all the time are no change of the status: the meters carry them.
constexpr std::string_view kMoving[] = {"power_w", "clock_skew_s", "uptime_s", "disk_free_bytes",
                                        "running"};
// Only of a link: the rate of a download or a load says when it stands still.
constexpr std::string_view kMovingOfLinks[] = {"p50_us", "p99_us", "gbit_s", "bytes_s"};

bool is_moving(std::string_view name, bool is_of_link = false) {
  return std::find(std::begin(kMoving), std::end(kMoving), name) != std::end(kMoving) ||
         (is_of_link && std::find(std::begin(kMovingOfLinks), std::end(kMovingOfLinks), name) !=
                            std::end(kMovingOfLinks));
}

Json without_moving(const Json& value, bool is_of_link = false) {
  if (value.is_array()) {
    JsonArray list;
    for (const Json& item : value.get_array()) list.push_back(without_moving(item, is_of_link));
    return list;
  }
  if (!value.is_object()) return value;
  JsonObject object;
  for (const auto& [name, member] : value.get_object()) {
    if (is_moving(name, is_of_link)) continue;
    object[name] = without_moving(member, is_of_link || name == "links");
  }
  return object;
}

EventMember member_of(std::string_view name, const Json& value, bool is_for_control = false) {
  return {.text = dump_json(value),
          .key = is_moving(name) ? "" : dump_json(without_moving(value)),
          .is_for_control = is_for_control};
}

int64_t wall_ms() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return now / std::chrono::milliseconds(1);
}

}  // namespace

StatusWatch::StatusWatch(ApiContext& context) : context_(context), thread_([this] { run(); }) {
  context_.events().set_on_added([this] {
    const std::lock_guard lock(mutex_);
    has_new_stream_ = true;
    changed_.notify_all();
  });
}

StatusWatch::~StatusWatch() {
  context_.events().set_on_added({});
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void StatusWatch::run() {
  Clock::time_point looked{};
  std::unique_lock lock(mutex_);
  while (!is_stopping_) {
    const bool is_watched = context_.events().stream_count() > 0;
    const auto next = looked + (is_watched ? kPeriod : kIdlePeriod);
    changed_.wait_until(lock, next, [&] { return is_stopping_ || has_new_stream_; });
    // A new stream is served at once, but not more often than the others.
    if (std::exchange(has_new_stream_, false)) {
      changed_.wait_until(lock, looked + kPeriod, [this] { return is_stopping_; });
    }
    if (is_stopping_) break;
    looked = Clock::now();
    lock.unlock();
    const Status done = guarded([&] { look(looked); });
    if (!done.ok()) log_warn("events: a look at the status failed: {}", done.error().message);
    lock.lock();
  }
}

void StatusWatch::look(Clock::time_point now) {
  EventHub& hub = context_.events();
  const ClusterReport report = look_at_cluster(context_);
  // The cluster's loop does not answer: streams get comments until it does.
  if (context_.cluster() != nullptr && report.cluster.empty()) return;
  tell_happenings(report);
  if (hub.stream_count() == 0) return;
  const JsonObject status = status_members(context_, report);
  EventMembers members;
  for (const auto& [name, value] : status) members.emplace(name, member_of(name, value));
  if (context_.cluster() != nullptr) {
    members.emplace("pins", member_of("pins", pins_json(report), true));
  }
  hub.publish(std::move(members));
  if (!metered_ || now - *metered_ >= kMetersPeriod) tell_meters(report, now);
  hub.send(now);
}

void StatusWatch::tell_happenings(const ClusterReport& report) {
  std::vector<ModelStatus> models;
  for (const auto& model : context_.models()) models.push_back(model->status());
  for (const Happening& one : happenings_.look(report, models, Clock::now())) {
    context_.events().happened(wall_ms(), one.kind, one.sentence);
  }
}

void StatusWatch::tell_meters(const ClusterReport& report, Clock::time_point now) {
  metered_ = now;
  context_.events().check_permissions();
  JsonObject meters = meters_.look(context_, report, now);
  meters["now_ms"] = wall_ms();
  context_.events().set_meters(dump_json(meters));
}

}  // namespace lockstep
