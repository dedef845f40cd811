#include "node/cluster_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "node/request_check.h"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// The placement's trouble and not the request's: its process died, or its group is being stopped.
bool is_loss(const Error& error) {
  return error.code == ErrorCode::kPeerLost || error.code == ErrorCode::kCancelled;
}

}  // namespace

std::shared_ptr<ClusterModel> ClusterModel::make(EventLoop& loop, ModelFolder folder,
                                                 ClusterModelOptions options) {
  if (options.name.empty()) options.name = folder.name;
  return std::shared_ptr<ClusterModel>(
      new ClusterModel(loop, std::move(folder), std::move(options)));
}

ClusterModel::ClusterModel(EventLoop& loop, ModelFolder folder, ClusterModelOptions options)
    : folder_(std::move(folder)), options_(std::move(options)), loop_(loop), requests_([this] {
        const std::lock_guard lock(mutex_);
        --status_.running;
      }) {
  status_.name = options_.name;
  status_.pooling = folder_.pooling;
}

ClusterModel::~ClusterModel() {
  LOCKSTEP_CHECK(is_closed_);
}

ModelStatus ClusterModel::status() const {
  const std::lock_guard lock(mutex_);
  return status_;
}

Result<uint64_t> ClusterModel::generate(GenerateRequest request, GenerationEvents events) {
  const std::lock_guard lock(mutex_);
  TRY(check(request));
  const uint64_t id = next_id_++;
  ++status_.running;
  inbox_.submitted.push_back({id, std::move(request), std::move(events)});
  wake();
  return id;
}

// Under the mutex.
Status ClusterModel::check(const GenerateRequest& request) const {
  if (is_closed_) {
    return Error{ErrorCode::kPeerLost, fmt::format("the model {} is unloaded", options_.name)};
  }
  if (!refusal_.empty()) return Error{ErrorCode::kPeerLost, refusal_};
  if (request.prompt_logits) {
    return Error{ErrorCode::kUnsupported,
                 "rows of logits of a prompt are not given by a model of a cluster"};
  }
  return check_request(request, {.context = status_.context,
                                 .running = status_.running,
                                 .running_max = options_.sequences_max + options_.queue_max});
}

void ClusterModel::cancel(uint64_t request) {
  const std::lock_guard lock(mutex_);
  if (is_closed_) return;  // all have ended
  inbox_.cancelled.push_back(request);
  wake();
}

// Under the mutex, which keeps close() and with it the end of the loop away.
void ClusterModel::wake() {
  if (std::exchange(is_woken_, true)) return;
  loop_.post([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->take_inbox();
  });
}

ClusterModel::Inbox ClusterModel::empty_inbox() {
  const std::lock_guard lock(mutex_);
  is_woken_ = false;
  return std::exchange(inbox_, {});
}

void ClusterModel::add_inbox(Inbox inbox) {
  for (Submitted& each : inbox.submitted) {
    requests_.add(each.id, std::move(each.request), std::move(each.events),
                  Clock::now() + options_.load_wait);
  }
  submit_held(Clock::now());
  for (uint64_t id : inbox.cancelled) {
    if (requests_.cancel(id) && route_) route_->cancel(id);
  }
}

void ClusterModel::take_inbox() {
  add_inbox(empty_inbox());
  refuse_new();
  arm();
}

void ClusterModel::set_route(const MakeRoute& make) {
  if (is_closed_) return;
  drop_route({ErrorCode::kPeerLost,
              fmt::format("the model {} is served by another placement now", options_.name)});
  is_answered_ = false;
  route_ = make(events_of(++route_number_));
  set_refusal("");
}

void ClusterModel::on_status(const ModelStatus& status) {
  set_status(status);
  if (std::exchange(is_answered_, true)) return;
  submit_held(Time::max());
  arm();
}

void ClusterModel::drop_route(const Error& reason) {
  if (!route_) return;
  ++route_number_;  // what it says from now on is late
  const auto dropped = std::move(route_);
  show_lost(reason);
  requests_.hold_submitted(resumption(), {ErrorCode::kPeerLost, reason.message});
  refuse_new();
  arm();
}

void ClusterModel::show_lost(const Error& reason) {
  const std::lock_guard lock(mutex_);
  status_.state = ModelStatus::State::kRestarting;
  status_.last_error = reason.message;
  status_.ranks.clear();
  status_.links.clear();
}

void ClusterModel::lose_route(const Error& error) {
  log_warn("{}: {}; its requests wait for another placement", options_.name, error.message);
  drop_route(error);
  if (options_.on_route_lost) options_.on_route_lost(error);
}

void ClusterModel::set_status(ModelStatus status) {
  const std::lock_guard lock(mutex_);
  status.name = status_.name;
  status.pooling = status_.pooling;
  status.running = status_.running;
  status_ = std::move(status);
}

void ClusterModel::set_refusal(std::string sentence) {
  {
    const std::lock_guard lock(mutex_);
    refusal_ = std::move(sentence);
  }
  refuse_new();
}

void ClusterModel::refuse_new() {
  std::string sentence;
  {
    const std::lock_guard lock(mutex_);
    sentence = refusal_;
  }
  if (!sentence.empty()) requests_.fail_new({ErrorCode::kPeerLost, std::move(sentence)});
}

void ClusterModel::close() {
  Inbox inbox;
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(is_closed_, true)) return;
    inbox = std::exchange(inbox_, {});
    status_.state = ModelStatus::State::kStopped;
    status_.ranks.clear();
  }
  ++route_number_;
  route_.reset();
  timer_.cancel();
  add_inbox(std::move(inbox));
  requests_.fail_all(
      {ErrorCode::kCancelled, fmt::format("the model {} is being unloaded", options_.name)});
}

// Null: the route is not there any more, or the model is not.
std::shared_ptr<ClusterModel> ClusterModel::of_route(uint64_t route_number) {
  return route_number == route_number_ ? shared_from_this() : nullptr;
}

RouteEvents ClusterModel::events_of(uint64_t route_number) {
  const auto current = [weak = weak_from_this(), route_number] {
    const auto self = weak.lock();
    return self ? self->of_route(route_number) : nullptr;
  };
  return {.on_token =
              [current](uint64_t id, int32_t token) {
                if (const auto self = current()) self->requests_.token(id, token);
              },
          .on_row =
              [current](uint64_t id, std::span<const float> row) {
                if (const auto self = current()) self->requests_.logits(id, row);
              },
          .on_end =
              [current](uint64_t id, Result<FinishReason> outcome) {
                if (const auto self = current()) self->end_or_hold(id, std::move(outcome));
              },
          .on_busy =
              [current](uint64_t id) {
                if (const auto self = current()) self->put_back(id);
              },
          .on_status =
              [current](const ModelStatus& status) {
                if (const auto self = current()) self->on_status(status);
              },
          .on_lost =
              [current](const Error& error) {
                if (const auto self = current()) self->lose_route(error);
              }};
}

void ClusterModel::end_or_hold(uint64_t id, Result<FinishReason> outcome) {
  if (outcome.ok() || !is_loss(outcome.error())) return requests_.end(id, std::move(outcome));
  RequestTable::Resumption resumed = resumption();
  resumed.retry_at = Clock::now() + options_.retry_pause;
  requests_.hold(id, resumed, {ErrorCode::kPeerLost, outcome.error().message});
  arm();
}

void ClusterModel::put_back(uint64_t id) {
  requests_.put_back(id, Clock::now() + options_.retry_pause);
  arm();
}

RequestTable::Resumption ClusterModel::resumption() const {
  return {.deadline = Clock::now() + options_.resume_wait,
          .losses_max = options_.losses_max,
          .context = status().context};
}

void ClusterModel::submit_held(Time now) {
  if (!route_ || !is_answered_) return;
  requests_.submit_held(
      [this](uint64_t id, const GenerateRequest& request) { return route_->submit(id, request); },
      now);
}

// One timer for the next thing that is due.
void ClusterModel::arm() {
  Time due = requests_.next_deadline();
  if (route_ && is_answered_) due = std::min(due, requests_.next_retry());
  if (due == timer_due_) return;
  timer_due_ = due;
  timer_.cancel();
  if (due == Time::max()) return;
  const auto delay = std::max(std::chrono::ceil<milliseconds>(due - Clock::now()), milliseconds(0));
  timer_ = loop_.call_after(delay, [this] { on_timer(); });
}

void ClusterModel::on_timer() {
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
