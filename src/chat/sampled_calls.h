// SampledCalls: the arguments of the calls that models wrote last, to the letter. A client sends a
// call back with its answer, perhaps with the same JSON written otherwise; rendered as the model
// wrote it, the conversation begins with the very text that was generated, and what is cached of it
// holds. Filled and asked by the chat API; any thread.
#pragma once

#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "chat/output_delta.h"
#include "json/json.h"

namespace lockstep {

class SampledCalls {
 public:
  // Beyond either the oldest are forgotten.
  static constexpr size_t kCallsMax = 4096;
  static constexpr size_t kBytesMax = size_t{16} << 20;

  // Arguments that are no JSON object are not kept.
  void remember(const OutputCall& call);
  // The text of the arguments of the call with this id, if `arguments` are the same value with keys
  // in the same order. Nothing if the model is not known to have written it.
  std::optional<std::string> find(std::string_view id, const Json& arguments) const;

 private:
  mutable std::mutex mutex_;
  std::unordered_map<std::string, std::string> texts_;  // by id and value: ids come again
  std::deque<std::string> order_;                       // keys, the oldest first
  size_t bytes_ = 0;
};

}  // namespace lockstep
