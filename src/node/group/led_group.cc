#include "node/group/led_group.h"

#include <condition_variable>
#include <mutex>
#include <utility>

#include "base/threads/guarded.h"

namespace lockstep {

struct LedGroup::State : std::enable_shared_from_this<State> {
  State(EventLoop& own_loop, Events handlers) : loop(own_loop), events(std::move(handlers)) {}

  // Any thread. Work posted after the object's end finds no events; a copy of them is called, since
  // the call may end the object.
  void tell(std::function<void(Events)> what) {
    loop.post([state = shared_from_this(), what = std::move(what)] { what(state->events); });
  }
  void on_state(ModelStatus::State now, const std::string& reason) {
    if (now == ModelStatus::State::kReady) {
      tell([](Events to) {
        if (to.on_ready) to.on_ready();
      });
    } else if (now == ModelStatus::State::kFailed) {
      fail({ErrorCode::kPeerLost, reason});
    }
  }
  void fail(Error error) {
    tell([error = std::move(error)](Events to) {
      if (to.on_failed) to.on_failed(error);
    });
  }

  EventLoop& loop;
  Events events;  // the loop's thread

  std::mutex mutex;  // guards what follows
  std::condition_variable changed;
  std::shared_ptr<GroupSupervisor> group;
  bool is_stopping = false;
};

std::unique_ptr<LedGroup> LedGroup::start(EventLoop& loop, MakeOptions make_options,
                                          Events events) {
  std::unique_ptr<LedGroup> led(new LedGroup(std::make_shared<State>(loop, std::move(events))));
  led->thread_ =
      std::thread([state = led->state_, make = std::move(make_options)] { run(state, make); });
  return led;
}

LedGroup::LedGroup(std::shared_ptr<State> state) : state_(std::move(state)) {}

LedGroup::~LedGroup() {
  if (state_->loop.is_current_thread()) silence();
  stop();
  if (thread_.joinable()) thread_.join();
}

void LedGroup::silence() {
  state_->events = {};
}

std::shared_ptr<GroupSupervisor> LedGroup::group() const {
  const std::lock_guard lock(state_->mutex);
  return state_->group;
}

void LedGroup::stop() {
  const std::lock_guard lock(state_->mutex);
  state_->is_stopping = true;
  state_->changed.notify_all();
}

// Workers die with the thread that started them, the supervising one, which ends in here.
void LedGroup::run(const std::shared_ptr<State>& state, const MakeOptions& make_options) {
  Result<GroupSupervisorOptions> options = guarded(make_options);
  Result<std::unique_ptr<GroupSupervisor>> opened = Error{ErrorCode::kCancelled, "it was stopped"};
  if (options.ok()) {
    options.value().on_state = [weak = std::weak_ptr<State>(state)](ModelStatus::State now,
                                                                    const std::string& reason) {
      if (const auto state = weak.lock()) state->on_state(now, reason);
    };
    opened = guarded([&] { return GroupSupervisor::open(std::move(options.value())); });
  }
  const Error* failure = !options.ok()  ? &options.error()
                         : !opened.ok() ? &opened.error()
                                        : nullptr;
  if (failure) state->fail(*failure);
  {
    std::unique_lock lock(state->mutex);
    if (opened.ok()) state->group = std::move(opened.value());
    state->changed.wait(lock, [&] { return state->is_stopping; });
  }
  if (state->group) state->group->stop();
  state->tell([](Events to) {
    if (to.on_stopped) to.on_stopped();
  });
}

}  // namespace lockstep
