// EventLoop: one thread that waits for sockets, descriptors and timers, and runs their callbacks.
// The control plane of a cluster lives on one (cluster/peers/peers.h): its objects belong to the
// loop's thread and need no locks. When idle it sleeps in the kernel. Hides Asio, as all of net/
// does.
#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "base/result.h"

namespace lockstep {

class EventLoop {
 public:
  struct Impl;  // internal to net/

  static std::unique_ptr<EventLoop> start();
  // Ends the thread. Posted work that has not run is dropped; nothing runs afterwards. Handles and
  // connections of the loop must already have been destroyed, on its thread. Waits for a name
  // lookup in progress: the system's resolver cannot be interrupted.
  ~EventLoop();

  // Any thread: runs `work` on the loop's thread, in the order of the calls.
  void post(std::function<void()> work);
  // A loop that does not get to posted work in this time hangs.
  static constexpr std::chrono::milliseconds kRunLimit{30'000};
  // Any thread except the loop's: posts, and waits until `work` has run. kTimeout if it has not
  // begun within `limit`; then it never runs, so it may use the caller's variables. Work that has
  // begun is waited for. The error of an exception that it throws.
  Status run_and_wait(std::function<void()> work, std::chrono::milliseconds limit = kRunLimit);
  // The same for constructors and destructors, which cannot go on without it: a loop that hangs
  // ends the program. An exception is only logged.
  void must_run(std::function<void()> work);
  bool is_current_thread() const;

  // Loop's thread only. A handle; destroying it cancels the timer, and its callback never runs.
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

  // Loop's thread only. Calls back whenever `fd` is readable, until the handle is destroyed; the
  // callback must read until nothing is left. The caller owns the descriptor, which must outlive
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
