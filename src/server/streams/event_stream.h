// EventStream: where the server-sent events of a streamed answer go: to one client, which ends the
// answer when it leaves, or into a stream that is kept (kept_stream.h). Used by the writers of
// OpenAI's answers; calls come one at a time, none after done() or refuse().
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "access/api_error.h"
#include "net/http/http_server.h"
#include "server/request/sse.h"

namespace lockstep {

class EventStream {
 public:
  virtual ~EventStream() = default;
  // Instead of a stream.
  virtual void refuse(HttpResponse response) = 0;
  // The head of the answer; `headers` besides those of every stream.
  virtual void open(StreamHeaders headers) = 0;
  virtual void event(std::string_view json) = 0;  // one line
  virtual void done() = 0;
  // The answer has been silent for long. False: the writer must send an event that says nothing.
  virtual bool keep_alive() { return false; }
  // Whether the head need not wait for the first event.
  virtual bool opens_early() const { return false; }
  // Why the answer cannot continue.
  virtual std::optional<ApiError> problem() const { return std::nullopt; }
};

// To one client.
std::unique_ptr<EventStream> make_event_stream(HttpReply reply);

}  // namespace lockstep
