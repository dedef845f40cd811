// StopMatcher: finds stop strings in a text that arrives in pieces, and holds back text that may
// begin one. One thread. The stop string that begins first in the text wins; it is not emitted.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

class StopMatcher {
 public:
  explicit StopMatcher(std::vector<std::string> stop) : stop_(std::move(stop)) {}

  // Returns the text that can be emitted now; nothing after a stop string.
  std::string push(std::string_view piece);
  // At the end of the text: returns the text held back.
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
