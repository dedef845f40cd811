// EventLoop: one thread that waits for sockets, descriptors and timers, and runs what they call.
// The control plane of a cluster lives on one (cluster/peers.h): its objects belong to the loop's
// thread and need no locks. Idle it sleeps in the kernel. Asio is hidden, as everywhere outside
// net/.
#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "base/result.h"

namespace lockstep {

class EventLoop {
 public:
  struct Impl;  // for net/ alone

  static std::unique_ptr<EventLoop> start();
  // Ends the thread. What was posted and has not run is dropped; nothing runs any more afterwards.
  // Handles and connections of the loop must be gone by then, destroyed on its thread. A name that
  // is being looked up is waited for: the system's resolver cannot be interrupted.
  ~EventLoop();

  // Any thread: `work` runs on the loop's thread, in the order of the calls.
  void post(std::function<void()> work);
  // Any other thread: posts, and waits until it has run. Not for the loop's own thread.
  void run_and_wait(std::function<void()> work);
  bool is_current_thread() const;

  // Loop's thread only. A handle; destroying it cancels, and then its callback never runs.
  class Timer {
   public:
    Timer() = default;
    struct State;
    explicit Timer(std::shared_ptr<State> state) : state_(std::move(state)) {}
    Timer(Timer&&) noexcept = default;
    Timer& operator=(Timer&& other) noexcept;
    ~Timer() { cancel(); }
    void cancel();

   private:
    std::shared_ptr<State> state_;
  };
  [[nodiscard]] Timer call_after(std::chrono::milliseconds delay, std::function<void()> callback);

  // Loop's thread only. Calls back whenever `fd` can be read, until the handle is destroyed; the
  // callback must read until nothing is left. The descriptor stays the caller's, and must outlive
  // the handle.
  class Watch {
   public:
    Watch() = default;
    struct State;
    explicit Watch(std::shared_ptr<State> state) : state_(std::move(state)) {}
    Watch(Watch&&) noexcept = default;
    Watch& operator=(Watch&& other) noexcept;
    ~Watch() { cancel(); }
    void cancel();

   private:
    std::shared_ptr<State> state_;
  };
  [[nodiscard]] Watch watch_readable(int fd, std::function<void()> callback);

  Impl& impl() { return *impl_; }

 private:
  explicit EventLoop(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep
