// Frames of a stream of requests between two nodes: messages of a type and a payload
// (node/wire/), each in one frame or, if it is longer, in several consecutive ones. A
// frame begins with a byte: the type, and a bit that says that more of the message follows. Used by
// stream_route.h and request_stream_host.h. Pure; invalid bytes are kCorrupt.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/engine.h"
#include "node/requests/request_route.h"

namespace lockstep {

inline constexpr size_t kRequestFrameBytesMax = size_t{1} << 20;  // as Peers limits a stream's
// A prompt of a million tokens needs a quarter of it. A worker accepts no more either.
inline constexpr size_t kRequestMessageBytesMax = (size_t{16} << 20) - 1;

enum class RequestMessage : uint8_t {
  // From the clients' node.
  kSubmit = 1,  // encode_request
  kCancel,      // encode_id
  // From the group's owner.
  kEvent,   // encode_event
  kStatus,  // encode_status
  kLost,    // encode_error: why the group is gone; the last message
};

struct StreamMessage {
  RequestMessage type = RequestMessage::kSubmit;
  std::string payload;
};

// The frames of one message; kExhausted beyond kRequestMessageBytesMax.
Result<std::vector<std::string>> request_frames(RequestMessage type, std::string_view payload);

class RequestFrameReader {
 public:
  // The message that `frame` completes. After an error the stream is unusable.
  Result<std::optional<StreamMessage>> take(std::string_view frame);

 private:
  std::optional<StreamMessage> partial_;
};

// Calls the event for a message of the owner.
Status tell_route(const RouteEvents& events, const StreamMessage& message);

struct RouteCalls {
  std::function<Status(uint64_t id, std::string encoded)> submit;  // for decode_request()
  std::function<void(uint64_t id)> cancel;
};
// Makes the call for a message of the clients' node; returns `submit`'s error too.
Status ask_route(const RouteCalls& calls, StreamMessage message);

}  // namespace lockstep
