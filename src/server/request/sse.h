// Server-sent events as the APIs' clients expect them: one `data:` line per event, no comments.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep {

inline constexpr const char* kSseContentType = "text/event-stream; charset=utf-8";
inline constexpr std::string_view kSseDoneData = "[DONE]";

// With the headers that every stream of events has.
using StreamHeaders = std::vector<std::pair<std::string, std::string>>;
StreamHeaders stream_headers(StreamHeaders headers);

// `json` is one line.
std::string sse_event(std::string_view json);
// With a line `event:`; `name` is one line too.
std::string sse_event(std::string_view name, std::string_view json);

}  // namespace lockstep
