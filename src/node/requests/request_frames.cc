#include "node/requests/request_frames.h"

#include <fmt/format.h>

#include <utility>

#include "node/wire/event_codec.h"
#include "node/wire/messages.h"
#include "node/wire/status_message.h"

namespace lockstep {
namespace {

constexpr uint8_t kMoreFollows = 0x80;
constexpr size_t kPieceBytesMax = kRequestFrameBytesMax - 1;

Error corrupt_request(std::string_view what) {
  return Error{ErrorCode::kCorrupt, fmt::format("a stream of requests has {}", what)};
}

}  // namespace

Result<std::vector<std::string>> request_frames(RequestMessage type, std::string_view payload) {
  if (payload.size() > kRequestMessageBytesMax) {
    return Error{ErrorCode::kExhausted,
                 fmt::format("a request of {} bytes is too large to be sent to another node, which "
                             "takes at most {}",
                             payload.size(), kRequestMessageBytesMax)};
  }
  std::vector<std::string> frames;
  do {
    const std::string_view piece = payload.substr(0, kPieceBytesMax);
    payload.remove_prefix(piece.size());
    std::string& frame = frames.emplace_back();
    frame.reserve(piece.size() + 1);
    frame.push_back(static_cast<char>(static_cast<uint8_t>(type) |
                                      (payload.empty() ? uint8_t{0} : kMoreFollows)));
    frame.append(piece);
  } while (!payload.empty());
  return frames;
}

Result<std::optional<StreamMessage>> RequestFrameReader::take(std::string_view frame) {
  if (frame.empty()) return corrupt_request("an empty frame");
  const auto first = static_cast<uint8_t>(frame.front());
  frame.remove_prefix(1);
  const uint8_t number = first & static_cast<uint8_t>(~kMoreFollows);
  if (number < static_cast<uint8_t>(RequestMessage::kSubmit) ||
      number > static_cast<uint8_t>(RequestMessage::kLost)) {
    return corrupt_request(fmt::format("a message of unknown type {}", number));
  }
  const auto type = static_cast<RequestMessage>(number);
  if (!partial_) partial_ = StreamMessage{type, {}};
  if (partial_->type != type) return corrupt_request("a message inside another");
  if (frame.size() > kRequestMessageBytesMax - partial_->payload.size()) {
    return corrupt_request("a message that is too long");
  }
  partial_->payload.append(frame);
  if ((first & kMoreFollows) != 0) return std::optional<StreamMessage>();
  return std::exchange(partial_, std::nullopt);
}

Status tell_route(const RouteEvents& events, const StreamMessage& message) {
  switch (message.type) {
    case RequestMessage::kEvent:
      events.on_event(TRY(decode_event(message.payload)));
      return Ok{};
    case RequestMessage::kStatus:
      events.on_status(TRY(decode_status(message.payload)));
      return Ok{};
    case RequestMessage::kLost:
      events.on_lost(TRY(decode_error(message.payload)).error);
      return Ok{};
    default:
      return corrupt_request("a message that only the clients' node may send");
  }
}

Status ask_route(const RouteCalls& calls, StreamMessage message) {
  switch (message.type) {
    case RequestMessage::kSubmit: {
      const uint64_t id = TRY(decode_request_id(message.payload));
      return calls.submit(id, std::move(message.payload));
    }
    case RequestMessage::kCancel:
      calls.cancel(TRY(decode_id(message.payload)));
      return Ok{};
    default:
      return corrupt_request("a message that only the group's owner may send");
  }
}

}  // namespace lockstep
