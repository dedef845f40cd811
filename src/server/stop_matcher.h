// StopMatcher: finds stop strings in a text that comes in pieces, and holds back what could still
// become one. One thread. The first stop string to begin in the text wins; it is not part of what
// is emitted.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

class StopMatcher {
 public:
  explicit StopMatcher(std::vector<std::string> stop) : stop_(std::move(stop)) {}

  // What can be emitted now. After a stop string was met nothing more is.
  std::string push(std::string_view piece);
  // What was held back, at the end of the text.
  std::string finish();
  bool is_stopped() const { return is_stopped_; }
  // The stop string that was met; empty: none.
  const std::string& met() const { return met_; }

 private:
  std::vector<std::string> stop_;
  std::string held_;  // shorter than the longest stop string
  bool is_stopped_ = false;
  std::string met_;
};

}  // namespace lockstep
