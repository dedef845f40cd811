#include "server/anthropic/anthropic_writer.h"

#include <utility>

#include "json/json.h"
#include "server/request/random_id.h"
#include "server/request/sse.h"

namespace lockstep {
namespace {

// A placeholder: reasoning is not signed, and clients may change it before they send it back.
// Clients drop blocks without a signature from the conversation.
constexpr const char* kSignature = "bG9ja3N0ZXA=";

std::string event(const char* type, JsonObject fields) {
  JsonObject object{{"type", type}};
  for (auto& field : fields) object.insert(field);
  return sse_event(type, dump_json(object));
}

JsonObject anthropic_usage(const GenerationUsage& usage, int64_t reasoning_tokens) {
  return {{"input_tokens", usage.prompt_tokens - usage.cached_tokens},
          {"cache_creation_input_tokens", 0},
          {"cache_read_input_tokens", usage.cached_tokens},
          {"output_tokens", usage.completion_tokens},
          {"output_tokens_details", JsonObject{{"thinking_tokens", reasoning_tokens}}}};
}

// The input of a truncated or malformed call is sent as text, in the form in which Anthropic
// expects it back.
Json input_json(const std::string& arguments) {
  if (arguments.empty()) return JsonObject();
  auto parsed = parse_untrusted_json(arguments);
  if (parsed.ok() && parsed.value().is_object()) return std::move(parsed.value());
  return JsonObject{{"INVALID_JSON", arguments}};
}

class MessageWriter final : public ChatWriter {
 public:
  explicit MessageWriter(MessageSettings settings) : settings_(std::move(settings)) {}

  std::string begin(const GenerationUsage& usage) override {
    usage_ = usage;
    return event("message_start", {{"message", message()}});
  }

  std::string delta(const OutputDelta& delta) override {
    std::string events;
    switch (delta.kind) {
      case OutputDelta::Kind::kContent:
        events = open(Block::kText);
        events += grow(delta.text, "text_delta", "text");
        break;
      case OutputDelta::Kind::kReasoning:
        events = open(Block::kThinking);
        if (settings_.shows_thinking) events += grow(delta.text, "thinking_delta", "thinking");
        break;
      case OutputDelta::Kind::kCall:
        events = open_call(delta);
        break;
      case OutputDelta::Kind::kArguments:
        events = grow(delta.text, "input_json_delta", "partial_json");
        break;
    }
    return events;
  }

  // Also before message_start, which must wait until the number of cached tokens is known.
  std::string silence() override { return event("ping", {}); }

  std::string end(const ChatEnd& end) override {
    std::string events = close();
    usage_ = end.usage;
    reasoning_tokens_ = end.reasoning_tokens;
    set_stop(end);
    JsonObject fields{
        {"delta", JsonObject{{"stop_reason", stop_reason_}, {"stop_sequence", stop_sequence_}}},
        {"usage", anthropic_usage(usage_, reasoning_tokens_)}};
    add_edits(fields);
    return events + event("message_delta", std::move(fields)) + event("message_stop", {});
  }

  std::string error(const ApiError& error) override {
    return sse_event("error", error_json(error, ErrorStyle::kAnthropic, settings_.request_id));
  }

  std::string whole() const override {
    JsonObject whole = message();
    add_edits(whole);
    return dump_json(whole);
  }

  HttpResponse refusal(const ApiError& error) const override {
    return error_response(error, ErrorStyle::kAnthropic, settings_.request_id);
  }

 private:
  enum class Block { kNone, kText, kThinking, kCall };

  JsonObject message() const {
    return {{"id", id_},
            {"type", "message"},
            {"role", "assistant"},
            {"model", settings_.model},
            {"content", content_},
            {"stop_reason", stop_reason_},
            {"stop_sequence", stop_sequence_},
            {"usage", anthropic_usage(usage_, reasoning_tokens_)}};
  }

  void add_edits(JsonObject& object) const {
    if (!settings_.tells_edits) return;
    object["context_management"] = JsonObject{{"applied_edits", JsonArray()}};
  }

  void set_stop(const ChatEnd& end) {
    if (!end.stop_string.empty()) {
      stop_reason_ = "stop_sequence";
      stop_sequence_ = end.stop_string;
    } else if (end.finish_reason == "length") {
      const bool is_asked = end.usage.completion_tokens >= settings_.max_tokens;
      stop_reason_ = is_asked ? "max_tokens" : "model_context_window_exceeded";
    } else {
      stop_reason_ = end.finish_reason == "tool_calls" ? "tool_use" : "end_turn";
    }
  }

  std::string open(Block block) {
    if (open_ == block) return {};
    return block == Block::kText
               ? start(block, {{"type", "text"}, {"text", ""}})
               : start(block, {{"type", "thinking"}, {"thinking", ""}, {"signature", ""}});
  }

  std::string open_call(const OutputDelta& call) {
    return start(
        Block::kCall,
        {{"type", "tool_use"}, {"id", call.id}, {"name", call.name}, {"input", JsonObject()}});
  }

  std::string start(Block block, JsonObject object) {
    std::string events = close();
    open_ = block;
    block_ = std::move(object);
    return events.append(
        event("content_block_start", {{"index", content_.size()}, {"content_block", block_}}));
  }

  std::string grow(const std::string& text, const char* type, const char* key) {
    text_ += text;
    return block_delta({{"type", type}, {key, text}});
  }

  std::string block_delta(JsonObject delta) const {
    return event("content_block_delta", {{"index", content_.size()}, {"delta", std::move(delta)}});
  }

  std::string close() {
    if (open_ == Block::kNone) return {};
    std::string events;
    if (open_ == Block::kText) block_["text"] = text_;
    if (open_ == Block::kCall) block_["input"] = input_json(text_);
    if (open_ == Block::kThinking) {
      block_["thinking"] = text_;
      block_["signature"] = kSignature;
      events = block_delta({{"type", "signature_delta"}, {"signature", kSignature}});
    }
    events += event("content_block_stop", {{"index", content_.size()}});
    content_.push_back(std::move(block_));
    text_.clear();
    open_ = Block::kNone;
    return events;
  }

  const MessageSettings settings_;
  const std::string id_ = random_id("msg_");
  JsonArray content_;
  Block open_ = Block::kNone;
  JsonObject block_;  // the one that is open
  std::string text_;  // of it
  Json stop_reason_;
  Json stop_sequence_;
  GenerationUsage usage_;
  int64_t reasoning_tokens_ = 0;
};

}  // namespace

std::unique_ptr<ChatWriter> make_message_writer(MessageSettings settings) {
  return std::make_unique<MessageWriter>(std::move(settings));
}

}  // namespace lockstep
