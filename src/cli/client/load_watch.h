// LoadWatch: what to tell a user who waits for a model to load, from successive statuses of the
// node. A pure function of these and of the times passed in.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "json/json.h"

namespace lockstep {

class LoadWatch {
 public:
  using Clock = std::chrono::steady_clock;
  // A model that has waited this long, with a reason, counts as refused for now: while there is
  // hope the cluster retries sooner.
  static constexpr std::chrono::seconds kPatience{10};

  // kPartial: some groups are ready, and another one is refused for now.
  enum class State { kWaiting, kReady, kRefused, kPartial, kGone };
  struct Said {
    State state = State::kWaiting;
    std::string text;  // the progress, the location, or why not
  };

  explicit LoadWatch(std::string name) : name_(std::move(name)) {}
  Said look(const Json& status, Clock::time_point now);

 private:
  const std::string name_;
  std::optional<Clock::time_point> waits_since_;
};

}  // namespace lockstep
