#include "node/cluster/routed_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "node/requests/pick_group.h"
#include "node/requests/request_check.h"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// The placement's fault, not the request's: its process died, or its group is being stopped.
bool is_loss(const Error& error) {
  return error.code == ErrorCode::kPeerLost || error.code == ErrorCode::kCancelled;
}

}  // namespace

std::shared_ptr<RoutedModel> RoutedModel::make(EventLoop& loop, ModelFolder folder,
                                               RoutedModelOptions options) {
  if (options.name.empty()) options.name = folder.name;
  return std::shared_ptr<RoutedModel>(new RoutedModel(loop, std::move(folder), std::move(options)));
}

RoutedModel::RoutedModel(EventLoop& loop, ModelFolder folder, RoutedModelOptions options)
    : folder_(std::move(folder)), options_(std::move(options)), loop_(loop), requests_([this] {
        const std::lock_guard lock(mutex_);
        --status_.running;
      }) {
  status_.name = options_.name;
  status_.pooling = folder_.pooling;
}

RoutedModel::~RoutedModel() {
  LOCKSTEP_CHECK(is_closed_);
}

ModelStatus RoutedModel::status() const {
  const std::lock_guard lock(mutex_);
  return status_;
}

Result<uint64_t> RoutedModel::generate(GenerateRequest request, EventSink events) {
  const std::lock_guard lock(mutex_);
  TRY(check(request));
  const uint64_t id = next_id_++;
  ++status_.running;
  inbox_.submitted.push_back({id, std::move(request), std::move(events)});
  wake();
  return id;
}

// Under the mutex.
Status RoutedModel::check(const GenerateRequest& request) const {
  if (is_closed_) {
    return Error{ErrorCode::kPeerLost, fmt::format("the model {} is unloaded", options_.name)};
  }
  if (!refusal_.empty()) return Error{ErrorCode::kPeerLost, refusal_};
  if (request.prompt_logits) {
    return Error{ErrorCode::kUnsupported,
                 "a model of a cluster does not return rows of logits of a prompt"};
  }
  const int groups = std::max(1, static_cast<int>(status_.groups.size()));
  return check_request(request,
                       {.context = status_.context,
                        .running = status_.running,
                        .running_max = groups * options_.sequences_max + options_.queue_max});
}

void RoutedModel::cancel(uint64_t request) {
  const std::lock_guard lock(mutex_);
  if (is_closed_) return;  // all have ended
  inbox_.cancelled.push_back(request);
  wake();
}

// Under the mutex, which delays close() and with it the end of the loop.
void RoutedModel::wake() {
  if (std::exchange(is_woken_, true)) return;
  loop_.post([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->take_inbox();
  });
}

RoutedModel::Inbox RoutedModel::empty_inbox() {
  const std::lock_guard lock(mutex_);
  is_woken_ = false;
  return std::exchange(inbox_, {});
}

void RoutedModel::add_inbox(Inbox inbox) {
  for (Submitted& each : inbox.submitted) {
    requests_.add(each.id, std::move(each.request), std::move(each.events),
                  Clock::now() + options_.load_wait);
  }
  submit_held(Clock::now());
  for (uint64_t id : inbox.cancelled) {
    const auto given = given_.find(id);
    if (requests_.cancel(id) && given != given_.end()) routes_.at(given->second).way->cancel(id);
  }
}

void RoutedModel::take_inbox() {
  add_inbox(empty_inbox());
  refuse_new();
  arm();
}

uint64_t RoutedModel::add_route(const PlacementEpoch& group, const MakeRoute& make) {
  const uint64_t number = ++last_route_;
  if (is_closed_) return number;
  routes_[number].group = group;
  routes_[number].way = make(events_of(number));
  set_refusal("");
  return number;
}

void RoutedModel::on_status(uint64_t route, const ModelStatus& status) {
  Route& of = routes_.at(route);
  of.status = status;
  of.others_running = std::max(0, status.running - of.running);
  show_routes();
  if (std::exchange(of.is_answered, true)) return;
  submit_held(Time::max());
  arm();
}

void RoutedModel::drop_route(uint64_t route, const Error& reason) {
  const auto dropped = routes_.extract(route);  // its later events are ignored
  if (dropped.empty()) return;
  std::vector<uint64_t> lost;
  for (const auto& [id, number] : given_) {
    if (number == route) lost.push_back(id);
  }
  is_answered() ? show_routes() : show_lost(reason);
  for (const uint64_t id : lost) {
    given_.erase(id);
    requests_.hold(id, resumption(), {ErrorCode::kPeerLost, reason.message});
  }
  refuse_new();
  submit_held(Clock::now());
  arm();
}

// The oldest group represents all; serving groups come before those that form again.
uint64_t RoutedModel::shown_route() const {
  const auto rank = [](const Route& route) {
    return std::tuple(route.status.state != ModelStatus::State::kReady, route.group);
  };
  const auto shown = std::min_element(
      routes_.begin(), routes_.end(),
      [&](const auto& a, const auto& b) { return rank(a.second) < rank(b.second); });
  return shown == routes_.end() ? 0 : shown->first;
}

void RoutedModel::show_routes() {
  if (routes_.empty()) return;
  set_status(routes_.at(shown_route()).status);
  show_groups();
}

void RoutedModel::show_groups() {
  std::vector<ModelStatus::Group> groups;
  const uint64_t shown = shown_route();
  for (const auto& [number, route] : routes_) {
    groups.push_back({.epoch = route.group,
                      .state = route.status.state,
                      .running = route.load(),
                      .is_shown = number == shown});
  }
  const std::lock_guard lock(mutex_);
  status_.groups = std::move(groups);
}

void RoutedModel::show_lost(const Error& reason) {
  const std::lock_guard lock(mutex_);
  status_.state = ModelStatus::State::kRestarting;
  status_.last_error = reason.message;
  status_.ranks.clear();
  status_.links.clear();
  status_.groups.clear();
}

void RoutedModel::lose_route(uint64_t route, const Error& error) {
  log_warn("{}: {}; its requests go to another group or wait for one", options_.name,
           error.message);
  drop_route(route, error);
  if (options_.on_route_lost) options_.on_route_lost(route, error);
}

void RoutedModel::set_status(ModelStatus status) {
  const std::lock_guard lock(mutex_);
  status.name = status_.name;
  status.pooling = status_.pooling;
  status.running = status_.running;
  status_ = std::move(status);
}

void RoutedModel::set_refusal(std::string sentence) {
  {
    const std::lock_guard lock(mutex_);
    refusal_ = std::move(sentence);
  }
  refuse_new();
}

void RoutedModel::refuse_new() {
  std::string sentence;
  {
    const std::lock_guard lock(mutex_);
    sentence = refusal_;
  }
  if (!sentence.empty()) requests_.fail_new({ErrorCode::kPeerLost, std::move(sentence)});
}

void RoutedModel::close() {
  Inbox inbox;
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(is_closed_, true)) return;
    inbox = std::exchange(inbox_, {});
    status_.state = ModelStatus::State::kStopped;
    status_.ranks.clear();
    status_.groups.clear();
  }
  routes_.clear();
  given_.clear();
  timer_.cancel();
  add_inbox(std::move(inbox));
  requests_.fail_all(
      {ErrorCode::kCancelled, fmt::format("the model {} is being unloaded", options_.name)});
}

RouteEvents RoutedModel::events_of(uint64_t route) {
  // Null: the route or the model is gone.
  const auto current = [weak = weak_from_this(), route]() -> std::shared_ptr<RoutedModel> {
    auto self = weak.lock();
    return self && self->routes_.contains(route) ? self : nullptr;
  };
  return {.on_event =
              [current, route](RequestEvent event) {
                if (const auto self = current()) self->take(route, std::move(event));
              },
          .on_status =
              [current, route](const ModelStatus& status) {
                if (const auto self = current()) self->on_status(route, status);
              },
          .on_lost =
              [current, route](const Error& error) {
                if (const auto self = current()) self->lose_route(route, error);
              }};
}

void RoutedModel::take(uint64_t route, RequestEvent event) {
  if (!is_given(event.id, route)) return;
  if (event.as<RequestEvent::Busy>()) return put_back(event.id);
  auto* const ended = event.as<RequestEvent::Ended>();
  if (ended) return end_or_hold(event.id, std::move(ended->outcome));
  requests_.take(std::move(event));
}

bool RoutedModel::is_given(uint64_t id, uint64_t route) const {
  const auto given = given_.find(id);
  return given != given_.end() && given->second == route;
}

void RoutedModel::take_back(uint64_t id) {
  const auto given = given_.extract(id);
  --routes_.at(given.mapped()).running;
  show_groups();
}

void RoutedModel::end_or_hold(uint64_t id, Result<FinishReason> outcome) {
  take_back(id);
  if (outcome.ok() || !is_loss(outcome.error())) return requests_.end(id, std::move(outcome));
  RequestTable::Resumption resumed = resumption();
  resumed.retry_at = Clock::now() + options_.retry_pause;
  requests_.hold(id, resumed, {ErrorCode::kPeerLost, outcome.error().message});
  arm();
}

void RoutedModel::put_back(uint64_t id) {
  take_back(id);
  requests_.put_back(id, Clock::now() + options_.retry_pause);
  arm();
}

RequestTable::Resumption RoutedModel::resumption() const {
  return {.deadline = Clock::now() + options_.resume_wait,
          .losses_max = options_.losses_max,
          .context = status().context};
}

bool RoutedModel::is_answered() const {
  return std::any_of(routes_.begin(), routes_.end(),
                     [](const auto& item) { return item.second.is_answered; });
}

void RoutedModel::submit_held(Time now) {
  if (!is_answered()) return;
  requests_.submit_held(
      [this](uint64_t id, const GenerateRequest& request) { return submit(id, request); }, now);
  show_groups();
}

Status RoutedModel::submit(uint64_t id, const GenerateRequest& request) {
  std::vector<GroupLoad> loads;
  std::vector<uint64_t> numbers;
  for (const auto& [number, route] : routes_) {
    if (!route.is_answered) continue;
    loads.push_back({.epoch = route.group,
                     .is_ready = route.status.state == ModelStatus::State::kReady,
                     .running = route.load()});
    numbers.push_back(number);
  }
  const uint64_t number = numbers[pick_group(loads, request.prompt)];
  Route& route = routes_.at(number);
  TRY(route.way->submit(id, request));
  ++route.running;
  given_[id] = number;
  return Ok{};
}

// One timer for whatever is due next.
void RoutedModel::arm() {
  Time due = requests_.next_deadline();
  if (is_answered()) due = std::min(due, requests_.next_retry());
  if (due == timer_due_) return;
  timer_due_ = due;
  timer_.cancel();
  if (due == Time::max()) return;
  const auto delay = std::max(std::chrono::ceil<milliseconds>(due - Clock::now()), milliseconds(0));
  timer_ = loop_.call_after(delay, [this] { on_timer(); });
}

void RoutedModel::on_timer() {
  timer_due_ = Time::max();
  const Time now = Clock::now();
  submit_held(now);
  const std::string last_error = status().last_error;
  requests_.fail_expired(now,
                         {ErrorCode::kPeerLost,
                          fmt::format("the model {} is not ready, try again later{}", options_.name,
                                      last_error.empty() ? "" : fmt::format(" ({})", last_error))});
  arm();
}

}  // namespace lockstep
