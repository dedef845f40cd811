#include "server/streams/event_stream.h"

#include "server/request/sse.h"

namespace lockstep {
namespace {

class ClientStream final : public EventStream {
 public:
  explicit ClientStream(HttpReply reply) : reply_(std::move(reply)) {}

  void refuse(HttpResponse response) override { reply_.send(std::move(response)); }
  void open(StreamHeaders headers) override {
    reply_.start(200, kSseContentType, stream_headers(std::move(headers)));
  }
  void event(std::string_view json) override { reply_.write(sse_event(json)); }
  void done() override { reply_.finish(); }

 private:
  const HttpReply reply_;
};

}  // namespace

std::unique_ptr<EventStream> make_event_stream(HttpReply reply) {
  return std::make_unique<ClientStream>(std::move(reply));
}

}  // namespace lockstep
