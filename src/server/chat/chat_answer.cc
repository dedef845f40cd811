#include "server/chat/chat_answer.h"

#include "server/request/sse.h"

namespace lockstep {
namespace {

class ChatSink final : public GenerationSink {
 public:
  ChatSink(ChatAnswer answer, HttpReply reply)
      : answer_(std::move(answer)), reply_(std::move(reply)), parser_(std::move(answer_.parser)) {}

  void on_start(const GenerationUsage& usage) override {
    open();
    tell(answer_.writer->begin(usage));
  }
  void on_text(size_t, std::string text) override { take(parser_.push(text)); }
  void on_token(size_t) override { reasoning_tokens_ += parser_.is_reasoning() ? 1 : 0; }
  void on_stop_string(size_t, std::string_view stop) override { end_.stop_string = stop; }
  void on_choice_end(size_t, std::string_view reason) override {
    take(parser_.finish(reason == "length"));
    for (const OutputCall& call : message_.message().calls) answer_.sampled->remember(call);
  }
  void on_silence() override {
    if (!answer_.is_streamed) return;
    open();
    tell(answer_.writer->silence());
  }
  void on_end(const AnswerFacts& facts) override {
    end_.finish_reason = parser_.finish_reason();
    end_.usage = facts.usage;
    end_.reasoning_tokens = reasoning_tokens_;
    tell(answer_.writer->end(end_));
    if (answer_.is_streamed) return reply_.finish();
    reply_.send({200, answer_.whole_type, answer_.writer->whole(), std::move(answer_.headers)});
  }
  void on_error(const ApiError& error) override {
    if (!has_head_) return reply_.send(answer_.writer->refusal(error));
    tell(answer_.writer->error(error));
    reply_.finish();
  }

 private:
  // The head waits for the first event, so that a refusal can still have its own status.
  void open() {
    if (!answer_.is_streamed || std::exchange(has_head_, true)) return;
    reply_.start(200, answer_.stream_type, stream_headers(answer_.headers));
  }
  void take(const std::vector<OutputDelta>& deltas) {
    std::string pieces;
    for (const OutputDelta& delta : deltas) {
      message_.add(delta);
      pieces += answer_.writer->delta(delta);
    }
    tell(std::move(pieces));
  }
  void tell(std::string piece) {
    if (answer_.is_streamed && !piece.empty()) reply_.write(std::move(piece));
  }

  ChatAnswer answer_;
  const HttpReply reply_;
  OutputParser parser_;
  MessageBuilder message_;
  ChatEnd end_;
  int64_t reasoning_tokens_ = 0;
  bool has_head_ = false;
};

}  // namespace

std::unique_ptr<GenerationSink> make_chat_answer(ChatAnswer answer, HttpReply reply) {
  return std::make_unique<ChatSink>(std::move(answer), std::move(reply));
}

}  // namespace lockstep
