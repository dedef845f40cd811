#include "chat/calls/after_json.h"

#include <algorithm>
#include <string>

namespace lockstep {
namespace {

using Gap = AfterJson::Kind;

constexpr size_t kNeedlessMax = 64;  // characters; more are text

bool begins_with_any(std::string_view text, std::string_view letters) {
  return !text.empty() && letters.find(text.front()) != std::string_view::npos;
}

}  // namespace

AfterJson after_json(const PendingText& pending, const ToolFormat& format,
                     const ToolFormat::Markers& between, bool is_list) {
  const bool has_tags = !format.call_begin.empty();  // else filler and brackets are the section's
  const std::string_view rest = pending.rest();
  const std::string needless = std::string(kBlanks) + (has_tags ? "}],;`" : "}");
  const size_t size = std::min(rest.find_first_not_of(needless), rest.size());
  if (size >= kNeedlessMax) return {};
  if (size == rest.size() && !pending.has_ended()) return {Gap::kWait, 0};
  const MarkerMatch match = match_front(pending, between, size);
  if (match.is_partial()) return {Gap::kWait, 0};
  const std::string_view after = rest.substr(size);
  if (has_tags && begins_with_any(after, "{")) return {Gap::kCall, size};
  const bool is_end = match.is_whole() || after.empty() || begins_with_any(after, "{") ||
                      begins_with_any(after, format.section_filler);
  const std::string_view skipped = rest.substr(0, size);
  if (is_end) return {Gap::kOther, without_blanks(skipped).empty() ? 0 : size};
  const size_t close = is_list ? skipped.rfind(']') : std::string_view::npos;
  return {Gap::kOther, close == std::string_view::npos ? 0 : close + 1};
}

AfterJson after_fence(const PendingText& pending) {
  const std::string_view rest = pending.rest();
  const size_t size = std::min(rest.find_first_not_of("] \t\r\n"), rest.size());
  if (size >= kNeedlessMax) return {};
  const MarkerMatch fence = match_front(pending, {"```"}, size);
  if (fence.is_partial()) return {Gap::kWait, 0};
  return {Gap::kOther, fence.is_whole() ? size + fence.bytes : 0};
}

}  // namespace lockstep
