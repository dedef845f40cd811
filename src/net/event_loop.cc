#include "net/event_loop.h"

#include <signal.h>

#include <algorithm>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "base/threads/guarded.h"
#include "net/event_loop_impl.h"

namespace lockstep {
namespace {

using boost::system::error_code;

// A write to a descriptor without a reader must be an error, not end the program: not every kind of
// descriptor can be written without the signal (net/frames/fd_relay.h).
void block_pipe_signal() {
  sigset_t pipe;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
}

// An exception ends only its callback: the loop and its other users continue.
void call(const std::function<void()>& callback) {
  const Status done = guarded(callback);
  if (!done.ok())
    log_error("net: a callback of the event loop threw an exception: {}", done.error().message);
}

// Work that another thread waits for. The loop and that thread own it together.
struct WaitedWork {
  // The loop's thread.
  void run() {
    {
      const std::lock_guard lock(mutex);
      if (state == State::kAbandoned) return;
      state = State::kRunning;
    }
    Status result = guarded(work);
    if (!result.ok()) {
      log_error("net: a callback of the event loop threw an exception: {}", result.error().message);
    }
    const std::lock_guard lock(mutex);
    done = std::move(result);
    state = State::kDone;
    changed.notify_all();
  }

  Status wait(std::chrono::milliseconds limit) {
    std::unique_lock lock(mutex);
    // In slices: the time of a stop of the whole process does not count.
    constexpr std::chrono::milliseconds kSlice{100};
    for (auto left = limit; left.count() > 0 && state == State::kWaiting; left -= kSlice) {
      changed.wait_for(lock, std::min(left, kSlice), [this] { return state == State::kDone; });
    }
    if (state == State::kWaiting) {
      state = State::kAbandoned;
      return Error{ErrorCode::kTimeout, "the event loop did not get to its work in " +
                                            std::to_string(limit.count()) + " ms"};
    }
    changed.wait(lock, [this] { return state == State::kDone; });
    return std::move(done);
  }

  std::function<void()> work;

 private:
  enum class State { kWaiting, kRunning, kDone, kAbandoned };

  std::mutex mutex;  // guards what follows
  std::condition_variable changed;
  State state = State::kWaiting;
  Status done = Ok{};
};

void run(boost::asio::io_context& context) {
  block_pipe_signal();
  for (;;) {
    const Status done = guarded([&] { context.run(); });
    if (done.ok()) return;
    log_error("net: an exception reached the event loop: {}", done.error().message);
  }
}

}  // namespace

std::unique_ptr<EventLoop> EventLoop::start() {
  std::unique_ptr<EventLoop> loop(new EventLoop(std::make_unique<Impl>()));
  Impl* const impl = loop->impl_.get();
  impl->thread = std::thread([impl] { run(impl->context); });
  return loop;
}

EventLoop::EventLoop(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

EventLoop::~EventLoop() {
  LOCKSTEP_CHECK(!is_current_thread());
  impl_->queue->close();
  impl_->context.stop();
  impl_->thread.join();
}

void EventLoop::post(std::function<void()> work) {
  impl_->queue->post(std::move(work));
}

Status EventLoop::run_and_wait(std::function<void()> work, std::chrono::milliseconds limit) {
  LOCKSTEP_CHECK(!is_current_thread());
  const auto waited = std::make_shared<WaitedWork>();
  waited->work = std::move(work);
  post([waited] { waited->run(); });
  return waited->wait(limit);
}

void EventLoop::must_run(std::function<void()> work) {
  const Status done = run_and_wait(std::move(work));
  const bool is_late = !done.ok() && done.error().code == ErrorCode::kTimeout;
  if (is_late) log_error("net: {}", done.error().message);
  LOCKSTEP_CHECK(!is_late);
}

bool EventLoop::is_current_thread() const {
  return impl_->thread.get_id() == std::this_thread::get_id();
}

// A callback may destroy its own handle, so each runs from a copy.

struct EventLoop::Timer::State {
  State(boost::asio::io_context& context, std::function<void()> called)
      : timer(context), callback(std::move(called)) {}
  boost::asio::steady_timer timer;
  std::function<void()> callback;  // empty once cancelled or run
};

EventLoop::Timer EventLoop::call_after(std::chrono::milliseconds delay,
                                       std::function<void()> callback) {
  auto state = std::make_shared<Timer::State>(impl_->context, std::move(callback));
  state->timer.expires_after(delay);
  state->timer.async_wait([state](const error_code&) {
    if (const auto called = std::exchange(state->callback, nullptr)) call(called);
  });
  return Timer(std::move(state));
}

EventLoop::Timer& EventLoop::Timer::operator=(Timer&& other) noexcept {
  if (this != &other) {
    cancel();
    state_ = std::move(other.state_);
  }
  return *this;
}

void EventLoop::Timer::cancel() {
  if (const auto state = std::exchange(state_, nullptr)) {
    state->callback = nullptr;
    state->timer.cancel();
  }
}

struct EventLoop::Watch::State : std::enable_shared_from_this<State> {
  State(boost::asio::io_context& context, int fd, std::function<void()> called)
      : descriptor(context, fd), callback(std::move(called)) {}

  void wait() {
    descriptor.async_wait(boost::asio::posix::descriptor_base::wait_read,
                          [self = shared_from_this()](const error_code& error) {
                            if (error || !self->callback) return;
                            const auto called = self->callback;
                            call(called);
                            if (self->callback) self->wait();
                          });
  }

  boost::asio::posix::stream_descriptor descriptor;
  std::function<void()> callback;  // empty once cancelled
};

EventLoop::Watch EventLoop::watch_readable(int fd, std::function<void()> callback) {
  auto state = std::make_shared<Watch::State>(impl_->context, fd, std::move(callback));
  state->wait();
  return Watch(std::move(state));
}

EventLoop::Watch& EventLoop::Watch::operator=(Watch&& other) noexcept {
  if (this != &other) {
    cancel();
    state_ = std::move(other.state_);
  }
  return *this;
}

void EventLoop::Watch::cancel() {
  if (const auto state = std::exchange(state_, nullptr)) {
    state->callback = nullptr;
    state->descriptor.release();  // the caller closes it
  }
}

}  // namespace lockstep
