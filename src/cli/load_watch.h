// LoadWatch: what to tell somebody who waits for a model to be loaded, from what the node's status
// says again and again. A pure function of it and of the times it is given.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "json/json.h"

namespace lockstep {

class LoadWatch {
 public:
  using Clock = std::chrono::steady_clock;
  // A model that has been waiting so long, with a reason, is refused for now: the cluster tries
  // again by itself in shorter times where there is hope.
  static constexpr std::chrono::seconds kPatience{10};

  // kPartial: some groups are ready, and another one is refused for now.
  enum class State { kWaiting, kReady, kRefused, kPartial, kGone };
  struct Said {
    State state = State::kWaiting;
    std::string text;  // of progress; where it is; why not
  };

  explicit LoadWatch(std::string name) : name_(std::move(name)) {}
  Said look(const Json& status, Clock::time_point now);

 private:
  const std::string name_;
  std::optional<Clock::time_point> waits_since_;
};

}  // namespace lockstep
