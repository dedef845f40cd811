#include "server/chat/chat_choice.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace lockstep {
namespace {

class ChatChoice final : public ChoiceWriter {
 public:
  ChatChoice(size_t index, OutputParser::Options options, std::shared_ptr<SampledCalls> sampled)
      : index_(index), parser_(std::move(options)), sampled_(std::move(sampled)) {}

  Objects begin() override {
    Objects objects;
    objects.push_back(choice({{"role", "assistant"}, {"content", ""}}, nullptr));
    return objects;
  }

  void logprobs(std::vector<TokenLogprobs> tokens) override {
    std::move(tokens.begin(), tokens.end(), std::back_inserter(logprobs_));
  }

  Objects text(std::string_view text) override { return take(parser_.push(text)); }

  void token() override { reasoning_tokens_ += parser_.is_reasoning() ? 1 : 0; }
  int64_t reasoning_tokens() const override { return reasoning_tokens_; }

  Objects end(std::string_view finish_reason) override {
    Objects objects = take(parser_.finish(finish_reason == "length"));
    objects.push_back(choice({}, Json(parser_.finish_reason())));
    add_logprobs(objects);
    for (const OutputCall& call : message_.message().calls) sampled_->remember(call);
    return objects;
  }

  JsonObject silence() const override { return choice({{"content", ""}}, nullptr); }

  JsonObject whole() const override {
    const OutputMessage& said = message_.message();
    JsonObject message{{"role", "assistant"}, {"content", said.content}, {"refusal", nullptr}};
    if (!said.reasoning.empty()) message["reasoning_content"] = said.reasoning;
    if (!said.calls.empty()) {
      if (said.content.empty()) message["content"] = nullptr;
      message["tool_calls"] = calls_json(said.calls);
    }
    return {{"index", index_},
            {"message", std::move(message)},
            {"logprobs", logprobs_.empty() ? Json() : logprobs_json(0)},
            {"finish_reason", parser_.finish_reason()}};
  }

  void drop_sent() override {
    logprobs_.erase(logprobs_.begin(), logprobs_.begin() + static_cast<ptrdiff_t>(logprobs_sent_));
    logprobs_sent_ = 0;
  }

 private:
  JsonObject choice(JsonObject delta, Json finish_reason) const {
    return {{"index", index_},
            {"delta", std::move(delta)},
            {"logprobs", nullptr},
            {"finish_reason", std::move(finish_reason)}};
  }

  Objects take(const std::vector<OutputDelta>& deltas) {
    Objects objects;
    for (const OutputDelta& delta : deltas) {
      message_.add(delta);
      objects.push_back(choice(delta_json(delta), nullptr));
    }
    add_logprobs(objects);
    return objects;
  }

  Json logprobs_json(size_t first) const {
    JsonArray content;
    for (size_t i = first; i < logprobs_.size(); ++i)
      content.push_back(chat_logprobs_json(logprobs_[i]));
    return JsonObject{{"content", std::move(content)}, {"refusal", nullptr}};
  }

  // Logprobs not sent yet go with the first chunk.
  void add_logprobs(Objects& objects) {
    if (objects.empty() || logprobs_sent_ == logprobs_.size()) return;
    objects.front()["logprobs"] = logprobs_json(logprobs_sent_);
    logprobs_sent_ = logprobs_.size();
  }

  const size_t index_;
  OutputParser parser_;
  MessageBuilder message_;
  int64_t reasoning_tokens_ = 0;
  std::vector<TokenLogprobs> logprobs_;
  size_t logprobs_sent_ = 0;
  const std::shared_ptr<SampledCalls> sampled_;
};

}  // namespace

std::unique_ptr<ChoiceWriter> make_chat_choice(size_t index, OutputParser::Options options,
                                               std::shared_ptr<SampledCalls> sampled) {
  return std::make_unique<ChatChoice>(index, std::move(options), std::move(sampled));
}

std::map<int32_t, std::string> marker_tokens(const ToolFormat& format, const Tokenizer& tokenizer) {
  std::map<int32_t, std::string> tokens;
  for (const std::string_view marker : format.markers()) {
    const auto ids = tokenizer.encode(marker, {.parse_special = true});
    if (ids.size() == 1 && tokenizer.is_special(ids.front())) tokens[ids.front()] = marker;
  }
  return tokens;
}

}  // namespace lockstep
