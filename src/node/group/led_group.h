// LedGroup: the group of a placement that this node leads, from start to end, on its own thread,
// since both take time. Loop's thread only, except for the group itself.
#pragma once

#include <functional>
#include <memory>
#include <thread>

#include "base/result.h"
#include "net/event_loop.h"
#include "node/group/group_supervisor.h"

namespace lockstep {

class LedGroup {
 public:
  // On the loop's thread, never from inside a call to this object.
  struct Events {
    std::function<void()> on_ready;  // group() is set; also after the group formed again
    std::function<void(const Error&)> on_failed;  // it has given up
    std::function<void()> on_stopped;             // once, after stop(): no process is left
  };
  // May read the model's files; runs on the group's thread.
  using MakeOptions = std::function<Result<GroupSupervisorOptions>()>;

  static std::unique_ptr<LedGroup> start(EventLoop& loop, MakeOptions make_options, Events events);
  // stop(), and waits. On the loop's thread only after on_stopped; elsewhere only after silence().
  ~LedGroup();
  LedGroup(const LedGroup&) = delete;
  LedGroup& operator=(const LedGroup&) = delete;

  // Null until it is ready for the first time.
  std::shared_ptr<GroupSupervisor> group() const;
  void stop();
  // No event follows.
  void silence();

 private:
  struct State;
  explicit LedGroup(std::shared_ptr<State> state);
  static void run(const std::shared_ptr<State>& state, const MakeOptions& make_options);

  std::shared_ptr<State> state_;
  std::thread thread_;
};

}  // namespace lockstep
