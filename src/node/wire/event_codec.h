// The bytes of a RequestEvent, on the control channel of a worker and on streams of requests
// between nodes: a byte for its kind, the request's id, the values as they lie in memory. A new
// kind needs a body_of() and a read_body() in event_codec.cc. Pure; invalid bytes are kCorrupt.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "engine/request_event.h"

namespace lockstep {

inline constexpr size_t kErrorBytesMax = 4096;  // of a sentence that is sent; the rest is cut off

// Without a part of a character at its end.
std::string cut_sentence(std::string_view sentence);

std::string encode_event(const RequestEvent& event);
Result<RequestEvent> decode_event(std::string_view bytes);

}  // namespace lockstep
