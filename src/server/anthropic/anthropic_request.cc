#include "server/anthropic/anthropic_request.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "server/anthropic/anthropic_blocks.h"
#include "server/anthropic/anthropic_tools.h"
#include "server/openai/openai_chat.h"
#include "server/request/request_fields.h"

namespace lockstep {
namespace {

constexpr int64_t kThinkingTokensMin = 1024;  // as Anthropic's

// A request while it is parsed: its fields, the same in OpenAI's form, and values without a place
// in that form.
struct AnthropicReading {
  RequestFields fields;
  JsonObject chat = {};
  MessagesRequest request = {};
  std::optional<std::string> effort = {};
  std::vector<std::string> ignored = {};  // of nested objects
};

void append_ignored(AnthropicReading& reading, const RequestFields& inner) {
  for (std::string& name : inner.ignored()) reading.ignored.push_back(std::move(name));
}

ApiResult<Ok> parse_stop_sequences(AnthropicReading& reading) {
  const Json* value = reading.fields.get("stop_sequences");
  if (value == nullptr) return Ok{};
  const auto is_good = [](const Json& one) {
    return one.is_string() && !one.get_string().empty() && one.get_string().size() <= kStopBytesMax;
  };
  if (!value->is_array() || value->get_array().size() > kStopStringsMax ||
      !std::all_of(value->get_array().begin(), value->get_array().end(), is_good)) {
    return bad_field("stop_sequences",
                     fmt::format("\"stop_sequences\" must be an array of at most {} strings of 1 "
                                 "to {} bytes",
                                 kStopStringsMax, kStopBytesMax));
  }
  reading.chat["stop"] = *value;
  return Ok{};
}

ApiResult<Ok> parse_anthropic_sampling(AnthropicReading& reading, MessagesRoute route) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  RequestFields& fields = reading.fields;
  if (const auto model = TRY(fields.text("model"))) reading.chat["model"] = *model;
  const auto max_tokens = TRY(fields.integer("max_tokens", 1, kMost));
  if (!max_tokens && route == MessagesRoute::kMessages) {
    return bad_field("max_tokens", "\"max_tokens\" is required");
  }
  if (max_tokens) reading.chat["max_tokens"] = *max_tokens;
  for (const char* key : {"temperature", "top_p"}) {
    if (const auto number = TRY(fields.number(key, 0, 1))) reading.chat[key] = *number;
  }
  if (const auto top_k = TRY(fields.integer("top_k", 0, kMost))) reading.chat["top_k"] = *top_k;
  if (const auto stream = TRY(fields.boolean("stream"))) reading.chat["stream"] = *stream;
  return parse_stop_sequences(reading);
}

// A final assistant message is not a finished turn: the model continues its text.
ApiResult<Ok> parse_anthropic_conversation(AnthropicReading& reading) {
  Conversation conversation;
  const std::string system = TRY(parse_system(reading.fields.get("system")));
  if (!system.empty()) conversation.add_system(system);
  TRY(add_messages(conversation, reading.fields.get("messages")));
  if (conversation.empty()) return bad_field("messages", "\"messages\" are empty");
  if (conversation.ends_with_calls()) {
    return bad_field(
        "messages",
        "the last message has a \"tool_use\" that is not followed by a \"tool_result\"");
  }
  if (conversation.ends_with("assistant")) {
    if (conversation.last_text().empty()) {
      return bad_field("messages", "the last message is the assistant's and has no text");
    }
    reading.chat["continue_final_message"] = true;
  }
  reading.chat["messages"] = conversation.take();
  return Ok{};
}

ApiResult<Ok> parse_thinking(AnthropicReading& reading) {
  ChatRequest& chat = reading.request.chat;
  chat.thinks = false;
  const JsonObject* thinking = TRY(reading.fields.object("thinking"));
  if (thinking == nullptr) return Ok{};
  RequestFields inner(*thinking, "thinking.");
  const std::string type = TRY(inner.text("type")).value_or("");
  if (type != "enabled" && type != "adaptive" && type != "disabled") {
    return bad_field("thinking.type", "\"thinking.type\" must be enabled, adaptive or disabled");
  }
  chat.thinks = type != "disabled";
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  const auto budget = TRY(inner.integer("budget_tokens", kThinkingTokensMin, kMost));
  const Json* most = reading.chat.if_contains("max_tokens");
  if (budget && most != nullptr && *budget >= most->get_int64()) {
    return bad_field("thinking.budget_tokens",
                     "\"thinking.budget_tokens\" must be less than \"max_tokens\"");
  }
  if (type == "enabled" && !budget) {
    return bad_field("thinking.budget_tokens", "\"thinking.budget_tokens\" is required");
  }
  if (budget) reading.ignored.emplace_back("thinking.budget_tokens");
  const std::string display = TRY(inner.text("display")).value_or("summarized");
  if (display != "summarized" && display != "omitted") {
    return bad_field("thinking.display", "\"thinking.display\" must be summarized or omitted");
  }
  reading.request.shows_thinking = display == "summarized";
  append_ignored(reading, inner);
  return Ok{};
}

ApiResult<Ok> parse_format(AnthropicReading& reading, const JsonObject* format,
                           const std::string& param) {
  if (format == nullptr) return Ok{};
  RequestFields inner(*format, param + ".");
  if (TRY(inner.text("type")).value_or("") != "json_schema") {
    return bad_field(param + ".type", fmt::format("\"{}.type\" must be json_schema", param));
  }
  const JsonObject* schema = TRY(inner.object("schema"));
  if (schema == nullptr) {
    return bad_field(param + ".schema", fmt::format("\"{}.schema\" is required", param));
  }
  reading.chat["response_format"] =
      JsonObject{{"type", "json_schema"},
                 {"json_schema", {{"name", "answer"}, {"schema", *schema}, {"strict", true}}}};
  return Ok{};
}

// Effort has more levels here than templates know.
ApiResult<Ok> parse_output(AnthropicReading& reading) {
  TRY(parse_format(reading, TRY(reading.fields.object("output_format")), "output_format"));
  const JsonObject* output = TRY(reading.fields.object("output_config"));
  if (output == nullptr) return Ok{};
  RequestFields inner(*output, "output_config.");
  TRY(parse_format(reading, TRY(inner.object("format")), "output_config.format"));
  TRY(inner.refuse("task_budget"));
  if (auto effort = TRY(inner.text("effort"))) {
    constexpr std::string_view kEfforts[] = {"low", "medium", "high", "xhigh", "max"};
    if (std::find(std::begin(kEfforts), std::end(kEfforts), *effort) == std::end(kEfforts)) {
      return bad_field("output_config.effort",
                       "\"output_config.effort\" must be low, medium, high, xhigh or max");
    }
    reading.effort = *effort == "xhigh" || *effort == "max" ? "high" : *effort;
  }
  append_ignored(reading, inner);
  return Ok{};
}

// Templates drop the reasoning of earlier turns anyway; other edits are refused, because without
// them the model would see something else than the client believes.
ApiResult<Ok> parse_context_management(AnthropicReading& reading) {
  const JsonObject* management = TRY(reading.fields.object("context_management"));
  if (management == nullptr) return Ok{};
  RequestFields inner(*management, "context_management.");
  const Json* edits = inner.get("edits");
  if (edits != nullptr && !edits->is_array()) {
    return bad_field("context_management.edits", "\"context_management.edits\" must be an array");
  }
  for (const Json& edit : edits != nullptr ? edits->get_array() : JsonArray()) {
    const Json* type = find(edit, "type");
    if (type != nullptr && *type == "clear_thinking_20251015") continue;
    return unsupported_field("context_management.edits",
                             "\"context_management.edits\": only clear_thinking_20251015 is "
                             "supported");
  }
  reading.request.tells_edits = true;
  append_ignored(reading, inner);
  return Ok{};
}

ApiResult<Ok> parse_account_fields(AnthropicReading& reading) {
  RequestFields& fields = reading.fields;
  for (const char* key : {"metadata", "cache_control"}) {  // the user; caching needs no marks here
    [[maybe_unused]] const JsonObject* object = TRY(fields.object(key));
  }
  const std::string tier = TRY(fields.text("service_tier")).value_or("auto");
  if (tier != "auto" && tier != "standard_only") {
    return bad_field("service_tier", "\"service_tier\" must be auto or standard_only");
  }
  TRY(fields.refuse("speed", {Json("standard")}));
  TRY(fields.refuse("inference_geo", {Json("global")}));
  TRY(fields.refuse("mcp_servers", {Json(JsonArray())}));
  for (const char* key :
       {"container", "compaction", "thread", "fallbacks", "fallback_credit_token"}) {
    TRY(fields.refuse(key));
  }
  return Ok{};
}

// Errors found while the shared form is parsed use OpenAI's names.
ApiError in_anthropic_words(const ApiError& error) {
  return renamed_fields(error, {{"parallel_tool_calls", "tool_choice.disable_parallel_tool_use"},
                                {"response_format.json_schema", "output_config.format"},
                                {"response_format", "output_config.format"},
                                {"continue_final_message", "messages"},
                                {"stop", "stop_sequences"}});
}

}  // namespace

ApiResult<MessagesRequest> parse_messages_request(std::string_view body, MessagesRoute route) {
  const Json json = TRY(parse_body(body));
  AnthropicReading reading{RequestFields(json.get_object())};
  TRY(parse_anthropic_sampling(reading, route));
  TRY(parse_anthropic_conversation(reading));
  TRY(parse_claude_tools(reading.fields, reading.chat));
  TRY(parse_thinking(reading));
  TRY(parse_output(reading));
  TRY(parse_context_management(reading));
  TRY(parse_account_fields(reading));
  auto chat = parse_chat_fields(reading.chat);
  if (!chat.ok()) return in_anthropic_words(chat.error());
  MessagesRequest request = std::move(reading.request);
  const std::optional<bool> thinks = request.chat.thinks;
  request.chat = std::move(chat.value());
  request.chat.thinks = thinks;
  request.chat.reasoning_effort = std::move(reading.effort);
  request.chat.reasoning_is_hint = true;
  request.chat.options.ignored = std::move(reading.ignored);
  for (std::string& name : reading.fields.ignored()) {
    request.chat.options.ignored.push_back(std::move(name));
  }
  return request;
}

}  // namespace lockstep
