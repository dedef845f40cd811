#include "server/openai/responses_writer.h"

#include <ctime>
#include <utility>

#include "server/request/random_id.h"
#include "server/request/sse.h"

namespace lockstep {
namespace {

JsonObject responses_usage(const ChatEnd& end) {
  const GenerationUsage& usage = end.usage;
  return {{"input_tokens", usage.prompt_tokens},
          {"input_tokens_details", JsonObject{{"cached_tokens", usage.cached_tokens}}},
          {"output_tokens", usage.completion_tokens},
          {"output_tokens_details", JsonObject{{"reasoning_tokens", end.reasoning_tokens}}},
          {"total_tokens", usage.prompt_tokens + usage.completion_tokens}};
}

// Clients know few codes, and act on them.
const char* failure_code(const ApiError& error) {
  if (error.code == "context_length_exceeded") return "context_length_exceeded";
  return error.status == 429 ? "rate_limit_exceeded" : "server_error";
}

class ResponseWriter final : public ChatWriter {
 public:
  explicit ResponseWriter(ResponseSettings settings)
      : settings_(std::move(settings)), created_(static_cast<int64_t>(std::time(nullptr))) {}

  std::string begin(const GenerationUsage&) override {
    if (std::exchange(has_begun_, true)) return {};
    std::string events = response_event("response.created");
    return events.append(response_event("response.in_progress"));
  }

  std::string delta(const OutputDelta& delta) override {
    std::string events;
    switch (delta.kind) {
      case OutputDelta::Kind::kContent:
        events = open(Item::kMessage);
        events += grow(delta.text, "response.output_text.delta");
        break;
      case OutputDelta::Kind::kReasoning:
        events = open(Item::kReasoning);
        events += grow(delta.text, settings_.wants_summary ? "response.reasoning_summary_text.delta"
                                                           : "response.reasoning_text.delta");
        break;
      case OutputDelta::Kind::kCall:
        events = open_call(delta);
        break;
      case OutputDelta::Kind::kArguments:
        events = grow(delta.text, "response.function_call_arguments.delta");
        break;
    }
    return events;
  }

  // The API has no empty event, but an opening event can be repeated.
  std::string silence() override {
    return has_begun_ ? response_event("response.in_progress") : begin({});
  }

  std::string end(const ChatEnd& end) override {
    const bool is_cut = end.finish_reason == "length";
    std::string events = close(is_cut ? "incomplete" : "completed");
    status_ = is_cut ? "incomplete" : "completed";
    if (is_cut) incomplete_ = JsonObject{{"reason", "max_output_tokens"}};
    usage_ = responses_usage(end);
    return events.append(response_event(is_cut ? "response.incomplete" : "response.completed"));
  }

  std::string error(const ApiError& error) override {
    std::string events = close("incomplete");
    status_ = "failed";
    error_ = JsonObject{{"code", failure_code(error)}, {"message", error.message}};
    return events.append(response_event("response.failed"));
  }

  std::string whole() const override { return dump_json(response()); }

  HttpResponse refusal(const ApiError& error) const override { return error_response(error); }

 private:
  enum class Item { kNone, kReasoning, kMessage, kCall };

  JsonObject response() const {
    JsonObject object{{"id", id_},
                      {"object", "response"},
                      {"created_at", created_},
                      {"status", status_},
                      {"background", false},
                      {"error", error_},
                      {"incomplete_details", incomplete_},
                      {"model", settings_.model},
                      {"output", output_},
                      {"previous_response_id", nullptr},
                      {"service_tier", "default"},
                      {"store", false},
                      {"top_logprobs", 0},
                      {"usage", usage_}};
    for (const auto& field : settings_.echoed) object.insert(field);
    return object;
  }

  std::string event(std::string_view type, JsonObject fields) {
    JsonObject object{{"type", type}, {"sequence_number", sequence_number_++}};
    for (auto& field : fields) object.insert(field);
    return sse_event(type, dump_json(object));
  }
  std::string response_event(std::string_view type) {
    return event(type, {{"response", response()}});
  }
  // An event of the item that is open.
  std::string item_event(std::string_view type, JsonObject fields) {
    JsonObject all{{"item_id", item_.at("id")}, {"output_index", output_.size()}};
    if (open_ == Item::kMessage) all["content_index"] = 0;
    if (open_ == Item::kReasoning) {
      all[settings_.wants_summary ? "summary_index" : "content_index"] = 0;
    }
    for (auto& field : fields) all.insert(field);
    return event(type, std::move(all));
  }

  std::string open(Item item) {
    if (open_ == item) return {};
    std::string events = close("completed");
    open_ = item;
    item_ = item == Item::kMessage
                ? JsonObject{{"id", random_id("msg_")},
                             {"type", "message"},
                             {"status", "in_progress"},
                             {"role", "assistant"},
                             {"content", JsonArray()}}
                : JsonObject{{"id", random_id("rs_")},  {"type", "reasoning"},
                             {"status", "in_progress"}, {"summary", JsonArray()},
                             {"content", JsonArray()},  {"encrypted_content", nullptr}};
    events += item_added();
    return events.append(item_event(part_event("added"), {{"part", part()}}));
  }

  std::string open_call(const OutputDelta& call) {
    std::string events = close("completed");
    open_ = Item::kCall;
    item_ = {{"id", random_id("fc_")}, {"type", "function_call"}, {"status", "in_progress"},
             {"arguments", ""},        {"call_id", call.id},      {"name", call.name}};
    return events.append(item_added());
  }

  std::string item_added() {
    return event("response.output_item.added", {{"output_index", output_.size()}, {"item", item_}});
  }

  std::string grow(const std::string& text, std::string_view type) {
    text_ += text;
    JsonObject fields{{"delta", text}};
    if (open_ == Item::kMessage) fields["logprobs"] = JsonArray();
    return item_event(type, std::move(fields));
  }

  // The one part of a message or of reasoning.
  JsonObject part() const {
    if (open_ == Item::kMessage) {
      return {{"type", "output_text"},
              {"text", text_},
              {"annotations", JsonArray()},
              {"logprobs", JsonArray()}};
    }
    return {{"type", settings_.wants_summary ? "summary_text" : "reasoning_text"}, {"text", text_}};
  }
  std::string part_event(const char* what) const {
    const bool is_summary = open_ == Item::kReasoning && settings_.wants_summary;
    return std::string(is_summary ? "response.reasoning_summary_part." : "response.content_part.") +
           what;
  }

  std::string text_done() {
    switch (open_) {
      case Item::kMessage:
        return item_event("response.output_text.done",
                          {{"text", text_}, {"logprobs", JsonArray()}});
      case Item::kReasoning:
        return item_event(settings_.wants_summary ? "response.reasoning_summary_text.done"
                                                  : "response.reasoning_text.done",
                          {{"text", text_}});
      default:
        return item_event("response.function_call_arguments.done",
                          {{"name", item_.at("name")}, {"arguments", text_}});
    }
  }

  std::string close(const char* status) {
    if (open_ == Item::kNone) return {};
    std::string events = text_done();
    if (open_ == Item::kCall) {
      item_["arguments"] = text_;
    } else {
      events += item_event(part_event("done"), {{"part", part()}});
      const bool is_summary = open_ == Item::kReasoning && settings_.wants_summary;
      item_[is_summary ? "summary" : "content"].get_array().push_back(part());
    }
    item_["status"] = status;
    events +=
        event("response.output_item.done", {{"output_index", output_.size()}, {"item", item_}});
    output_.push_back(std::move(item_));
    text_.clear();
    open_ = Item::kNone;
    return events;
  }

  const ResponseSettings settings_;
  const std::string id_ = random_id("resp_");
  const int64_t created_;
  int64_t sequence_number_ = 0;
  JsonArray output_;
  Item open_ = Item::kNone;
  JsonObject item_;   // the one that is open
  std::string text_;  // of it
  const char* status_ = "in_progress";
  Json error_;
  Json incomplete_;
  Json usage_;
  bool has_begun_ = false;
};

}  // namespace

std::unique_ptr<ChatWriter> make_response_writer(ResponseSettings settings) {
  return std::make_unique<ResponseWriter>(std::move(settings));
}

}  // namespace lockstep
