#include "chat/calls/sampled_calls.h"

#include <utility>

namespace lockstep {
namespace {

std::string key_of(std::string_view id, const Json& arguments) {
  return std::string(id) + '\0' + dump_json(arguments);
}

}  // namespace

void SampledCalls::remember(const OutputCall& call) {
  const auto arguments = parse_untrusted_json(call.arguments);
  if (!arguments.ok() || !arguments.value().is_object()) return;
  std::string key = key_of(call.id, arguments.value());
  const size_t bytes = key.size() * 2 + call.arguments.size();
  if (bytes > kBytesMax) return;
  std::lock_guard lock(mutex_);
  if (!texts_.emplace(key, call.arguments).second) return;
  order_.push_back(std::move(key));
  bytes_ += bytes;
  while (bytes_ > kBytesMax || order_.size() > kCallsMax) {
    const auto oldest = texts_.find(order_.front());
    bytes_ -= oldest->first.size() * 2 + oldest->second.size();
    texts_.erase(oldest);
    order_.pop_front();
  }
}

std::optional<std::string> SampledCalls::find(std::string_view id, const Json& arguments) const {
  const std::string key = key_of(id, arguments);
  std::lock_guard lock(mutex_);
  const auto text = texts_.find(key);
  if (text == texts_.end()) return std::nullopt;
  return text->second;
}

}  // namespace lockstep
