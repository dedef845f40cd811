// Fetch: a small request to a backend and its whole answer, without blocking and under one
// deadline. A handle on the thread of the EventLoop; destroying it cancels without a callback.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "base/result.h"
#include "net/event_loop.h"
#include "net/http/http_client.h"

namespace lockstep {

class Fetch {
 public:
  using Ready = std::function<void(Result<HttpAnswer>)>;

  Fetch() = default;  // holds no request
  // `ready` is called once, later, with what call_http would have returned.
  static Fetch start(EventLoop& loop, HttpCall call, Ready ready);
  Fetch(Fetch&&) noexcept = default;
  Fetch& operator=(Fetch&& other) noexcept;
  ~Fetch() { cancel(); }
  void cancel();

 private:
  struct State;
  explicit Fetch(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

}  // namespace lockstep
