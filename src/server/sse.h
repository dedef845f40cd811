// Server-sent events as OpenAI's clients read them: one `data:` line an event, no comments, no
// names.
#pragma once

#include <string>
#include <string_view>

namespace lockstep {

inline constexpr const char* kSseContentType = "text/event-stream; charset=utf-8";
inline constexpr std::string_view kSseDone = "data: [DONE]\n\n";

// `json` is one line.
std::string sse_event(std::string_view json);

}  // namespace lockstep
