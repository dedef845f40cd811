// links: node
// Frames of a stream of requests: a length byte and that many bytes, repeated. Whatever they hold,
// each end reads a message or says why not; an accepted request, event or status is written so that
// it is read again and written the same.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "node/requests/request_frames.h"
#include "node/wire/event_codec.h"
#include "node/wire/messages.h"
#include "node/wire/status_message.h"

using namespace lockstep;

namespace {

void check_request(uint64_t id, const GenerateRequest& request) {
  const std::string written = encode_request(id, request);
  const auto again = decode_request(written);
  LOCKSTEP_CHECK(again.ok());
  LOCKSTEP_CHECK(encode_request(again.value().first, again.value().second) == written);
}

void check_event(const RequestEvent& event) {
  const std::string written = encode_event(event);
  const auto again = decode_event(written);
  LOCKSTEP_CHECK(again.ok());
  LOCKSTEP_CHECK(encode_event(again.value()) == written);
}

void check_status(const ModelStatus& status) {
  const std::string written = encode_status(status);
  const auto again = decode_status(written);
  LOCKSTEP_CHECK(again.ok());
  LOCKSTEP_CHECK(encode_status(again.value()) == written);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  RouteEvents events;
  events.on_event = [](const RequestEvent& event) { check_event(event); };
  events.on_status = [](const ModelStatus& status) { check_status(status); };
  events.on_lost = [](const Error&) {};
  const RouteCalls calls{.submit = [](uint64_t id, const std::string& encoded) -> Status {
                           const auto request = TRY(decode_request(encoded));
                           LOCKSTEP_CHECK(request.first == id);
                           check_request(id, request.second);
                           return Ok{};
                         },
                         .cancel = [](uint64_t) {}};
  RequestFrameReader reader;
  while (!bytes.empty()) {
    const size_t length = static_cast<uint8_t>(bytes.front());
    bytes.remove_prefix(1);
    const std::string_view frame = bytes.substr(0, length);
    bytes.remove_prefix(frame.size());
    const auto message = reader.take(frame);
    if (!message.ok()) return 0;
    if (!message.value()) continue;
    const Status told = tell_route(events, *message.value());
    const Status asked = ask_route(calls, *message.value());
    LOCKSTEP_CHECK(!told.ok() || !asked.ok());  // a message has one direction
  }
  return 0;
}
