// SampledCalls: the exact arguments of the latest calls that models wrote. A client sends a call
// back with its result, perhaps with the JSON formatted differently. Rendered as the model wrote
// it, the conversation matches the generated text, so its cached pages stay valid. Filled and read
// by the chat APIs; any thread.
#pragma once

#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "chat/calls/output_delta.h"
#include "json/json.h"

namespace lockstep {

class SampledCalls {
 public:
  // Beyond either limit the oldest are evicted.
  static constexpr size_t kCallsMax = 4096;
  static constexpr size_t kBytesMax = size_t{16} << 20;

  // Only arguments that are a JSON object are stored.
  void remember(const OutputCall& call);
  // The text of the arguments of the call with this id, if `arguments` are the same value with keys
  // in the same order. nullopt if no such call is stored.
  std::optional<std::string> find(std::string_view id, const Json& arguments) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::string> texts_;  // by id and value, because ids repeat
  std::deque<std::string> order_;             // keys, the oldest first
  size_t bytes_ = 0;
};

}  // namespace lockstep
