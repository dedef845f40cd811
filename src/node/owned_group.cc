#include "node/owned_group.h"

#include <condition_variable>
#include <mutex>
#include <utility>

namespace lockstep {

struct OwnedGroup::State : std::enable_shared_from_this<State> {
  State(EventLoop& own_loop, Events handlers) : loop(own_loop), events(std::move(handlers)) {}

  // Any thread. What is posted after the end of the object finds no events; a copy of them is
  // called, since the call may end the object.
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

  std::mutex mutex;  // of what follows
  std::condition_variable changed;
  std::shared_ptr<LocalGroup> group;
  bool is_stopping = false;
};

std::unique_ptr<OwnedGroup> OwnedGroup::start(EventLoop& loop, MakeOptions make_options,
                                              Events events) {
  std::unique_ptr<OwnedGroup> owned(
      new OwnedGroup(std::make_shared<State>(loop, std::move(events))));
  owned->thread_ =
      std::thread([state = owned->state_, make = std::move(make_options)] { run(state, make); });
  return owned;
}

OwnedGroup::OwnedGroup(std::shared_ptr<State> state) : state_(std::move(state)) {}

OwnedGroup::~OwnedGroup() {
  if (state_->loop.is_current_thread()) silence();
  stop();
  if (thread_.joinable()) thread_.join();
}

void OwnedGroup::silence() {
  state_->events = {};
}

std::shared_ptr<LocalGroup> OwnedGroup::group() const {
  const std::lock_guard lock(state_->mutex);
  return state_->group;
}

void OwnedGroup::stop() {
  const std::lock_guard lock(state_->mutex);
  state_->is_stopping = true;
  state_->changed.notify_all();
}

// Workers die with the thread that started them: the supervising one, which ends in here.
void OwnedGroup::run(const std::shared_ptr<State>& state, const MakeOptions& make_options) {
  Result<LocalGroupOptions> options = make_options();
  Result<std::unique_ptr<LocalGroup>> opened = Error{ErrorCode::kCancelled, "it was stopped"};
  if (options.ok()) {
    options.value().on_state = [weak = std::weak_ptr<State>(state)](ModelStatus::State now,
                                                                    const std::string& reason) {
      if (const auto state = weak.lock()) state->on_state(now, reason);
    };
    opened = LocalGroup::open(std::move(options.value()));
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
