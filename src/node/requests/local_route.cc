#include "node/requests/local_route.h"

#include <fmt/format.h>

#include <chrono>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "node/requests/request_check.h"

namespace lockstep {
namespace {

constexpr std::chrono::milliseconds kStatusPeriod{1'000};

// State of the service's callbacks. Must not hold the service: a thread of the service may release
// the last handle, and cannot wait for its own end.
class Carrier : public std::enable_shared_from_this<Carrier> {
 public:
  Carrier(EventLoop& loop, RouteEvents events) : events_(std::move(events)), loop_(&loop) {}

  EventSink events_of(uint64_t id) {
    return [self = shared_from_this(), id](RequestEvent event) {
      event.id = id;  // instead of the service's
      self->send(std::move(event));
    };
  }

  // Any thread.
  void send(RequestEvent event) {
    post([event = std::move(event)](Carrier& carrier) {
      if (event.as<RequestEvent::Ended>()) carrier.running_.erase(event.id);
      carrier.events_.on_event(event);
    });
  }

  // Any thread. `work` runs on the loop's, unless the route is gone.
  template <class Work>
  void post(Work work) {
    const std::lock_guard lock(mutex_);
    if (!loop_) return;
    loop_->post([self = shared_from_this(), work = std::move(work)] {
      if (!self->is_over_) work(*self);
    });
  }

  void lose(const Error& error) {
    is_over_ = true;
    events_.on_lost(error);
  }

  // Loop's thread. The events are kept: one of them may be running.
  void stop() {
    is_over_ = true;
    const std::lock_guard lock(mutex_);
    loop_ = nullptr;
  }

  void start(uint64_t id, uint64_t service_id) { running_[id] = service_id; }
  const std::map<uint64_t, uint64_t>& running() const { return running_; }
  const RouteEvents& events() const { return events_; }
  bool is_over() const { return is_over_; }

 private:
  // The loop's thread.
  const RouteEvents events_;
  std::map<uint64_t, uint64_t> running_;  // the service's ids by the route's
  bool is_over_ = false;

  std::mutex mutex_;
  EventLoop* loop_;  // null once the route is gone; the loop may be gone then
};

class LocalRoute final : public RequestRoute {
 public:
  LocalRoute(EventLoop& loop, std::shared_ptr<ModelService> service, RouteEvents events)
      : loop_(loop),
        service_(std::move(service)),
        carrier_(std::make_shared<Carrier>(loop, std::move(events))) {
    timer_ = loop_.call_after(std::chrono::milliseconds(0), [this] { tell_status(); });
  }

  ~LocalRoute() override {
    carrier_->stop();
    for (const auto& [id, service_id] : carrier_->running()) service_->cancel(service_id);
  }

  Status submit(uint64_t id, const GenerateRequest& request) override {
    auto accepted = service_->generate(request, carrier_->events_of(id));
    if (accepted.ok()) {
      carrier_->start(id, accepted.value());
      return Ok{};
    }
    switch (judge_refusal(*service_, request.prompt.size(), accepted.error())) {
      case Refusal::kFinal:
        return std::move(accepted.error());
      case Refusal::kBusy:
        carrier_->send({id, RequestEvent::Busy{}});
        return Ok{};
      case Refusal::kLost:
        carrier_->post([error = accepted.error()](Carrier& carrier) { carrier.lose(error); });
        return Ok{};
    }
    return Ok{};
  }

  void cancel(uint64_t id) override {
    const auto found = carrier_->running().find(id);
    if (found != carrier_->running().end()) service_->cancel(found->second);
  }

 private:
  // Polls, since a service has no event for this. Also finds a group that gave up while idle.
  void tell_status() {
    if (carrier_->is_over()) return;
    timer_ = loop_.call_after(kStatusPeriod, [this] { tell_status(); });
    const ModelStatus status = service_->status();
    const auto carrier = carrier_;  // an event may destroy this route
    if (status.state == ModelStatus::State::kFailed ||
        status.state == ModelStatus::State::kStopped) {
      return carrier->lose(end_of(status));
    }
    carrier->events().on_status(status);
  }

  static Error end_of(const ModelStatus& status) {
    if (status.state == ModelStatus::State::kStopped) {
      return {ErrorCode::kPeerLost, fmt::format("the model {} is unloaded", status.name)};
    }
    return {ErrorCode::kPeerLost,
            fmt::format("the model {} failed: {}", status.name, status.last_error)};
  }

  EventLoop& loop_;
  const std::shared_ptr<ModelService> service_;
  const std::shared_ptr<Carrier> carrier_;
  EventLoop::Timer timer_;
};

}  // namespace

std::unique_ptr<RequestRoute> make_local_route(EventLoop& loop,
                                               std::shared_ptr<ModelService> service,
                                               RouteEvents events) {
  return std::make_unique<LocalRoute>(loop, std::move(service), std::move(events));
}

}  // namespace lockstep
