// OwnedGroup: the group of a placement that this node leads, from its start to its end, on a thread
// of its own, since both take time. Loop's thread only, except where the group is asked.
#pragma once

#include <functional>
#include <memory>
#include <thread>

#include "base/result.h"
#include "net/event_loop.h"
#include "node/local_group.h"

namespace lockstep {

class OwnedGroup {
 public:
  // On the loop's thread, never from inside a call to this object.
  struct Events {
    std::function<void()> on_ready;  // group() can be asked; also after it was formed anew
    std::function<void(const Error&)> on_failed;  // it has given up
    std::function<void()> on_stopped;             // once, after stop(): nothing of it runs any more
  };
  // May read the model's files; runs on the group's thread.
  using MakeOptions = std::function<Result<LocalGroupOptions>()>;

  static std::unique_ptr<OwnedGroup> start(EventLoop& loop, MakeOptions make_options,
                                           Events events);
  // stop(), and waits. On the loop's thread only after on_stopped; elsewhere after silence().
  ~OwnedGroup();
  OwnedGroup(const OwnedGroup&) = delete;
  OwnedGroup& operator=(const OwnedGroup&) = delete;

  // Null until it is ready for the first time.
  std::shared_ptr<LocalGroup> group() const;
  void stop();
  // No event comes any more.
  void silence();

 private:
  struct State;
  explicit OwnedGroup(std::shared_ptr<State> state);
  static void run(const std::shared_ptr<State>& state, const MakeOptions& make_options);

  std::shared_ptr<State> state_;
  std::thread thread_;
};

}  // namespace lockstep
