#include "server/openai/responses_request.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "server/openai/openai_chat.h"
#include "server/openai/responses_items.h"
#include "server/openai/responses_tools.h"
#include "server/request/request_fields.h"

namespace lockstep {
namespace {

// A request while it is parsed: its fields, the same in the form of a chat completion, and the
// rest.
struct ResponsesReading {
  RequestFields fields;
  JsonObject chat = {};
  ResponsesRequest request = {};
  std::optional<std::string> effort = {};
  std::vector<std::string> ignored = {};
};

// Repeats a field in the answer: the sent value, else the default.
void echo(ResponsesReading& reading, const char* key, Json otherwise) {
  const Json* value = reading.fields.get(key);
  reading.request.echoed[key] = value != nullptr ? *value : std::move(otherwise);
}

ApiResult<Ok> parse_responses_conversation(ResponsesReading& reading) {
  Conversation conversation;
  const auto instructions = TRY(reading.fields.text("instructions"));
  if (instructions && !instructions->empty()) conversation.add_system(*instructions);
  TRY(add_input(conversation, reading.fields.get("input")));
  if (conversation.empty()) return bad_field("input", "\"input\" is empty");
  if (conversation.ends_with_calls()) {
    return bad_field("input", "the last function_call is not followed by a function_call_output");
  }
  reading.chat["messages"] = conversation.take();
  return Ok{};
}

ApiResult<Ok> parse_responses_sampling(ResponsesReading& reading) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  RequestFields& fields = reading.fields;
  if (const auto model = TRY(fields.text("model"))) reading.chat["model"] = *model;
  if (const auto most = TRY(fields.integer("max_output_tokens", 1, kMost))) {
    reading.chat["max_tokens"] = *most;
  }
  if (const auto number = TRY(fields.number("temperature", 0, 2))) {
    reading.chat["temperature"] = *number;
  }
  if (const auto number = TRY(fields.number("top_p", 0, 1))) reading.chat["top_p"] = *number;
  if (const auto stream = TRY(fields.boolean("stream"))) reading.chat["stream"] = *stream;
  if (const JsonObject* object = TRY(fields.object("stream_options"))) {
    RequestFields inner(*object, "stream_options.");
    TRY(inner.boolean("include_obfuscation"));  // padding; leaving it out is fine
    for (std::string& name : inner.ignored()) reading.ignored.push_back(std::move(name));
  }
  return Ok{};
}

ApiResult<Ok> parse_reasoning(ResponsesReading& reading) {
  const JsonObject* reasoning = TRY(reading.fields.object("reasoning"));
  Json effort;
  Json summary;
  if (reasoning != nullptr) {
    RequestFields inner(*reasoning, "reasoning.");
    reading.effort = TRY(inner.text("effort"));
    constexpr std::string_view kEfforts[] = {"none", "minimal", "low", "medium", "high", "xhigh"};
    if (reading.effort && std::find(std::begin(kEfforts), std::end(kEfforts), *reading.effort) ==
                              std::end(kEfforts)) {
      return bad_field("reasoning.effort",
                       "\"reasoning.effort\" must be none, minimal, low, medium, high or xhigh");
    }
    if (reading.effort) effort = *reading.effort;
    auto wanted = TRY(inner.text("summary"));
    const auto old_name = TRY(inner.text("generate_summary"));
    if (!wanted) wanted = old_name;
    if (wanted && *wanted != "auto" && *wanted != "concise" && *wanted != "detailed") {
      return bad_field("reasoning.summary",
                       "\"reasoning.summary\" must be auto, concise or detailed");
    }
    if (wanted) summary = *wanted;
    for (std::string& name : inner.ignored()) reading.ignored.push_back(std::move(name));
  }
  reading.request.wants_summary = !summary.is_null();
  reading.request.echoed["reasoning"] =
      JsonObject{{"effort", std::move(effort)}, {"summary", std::move(summary)}};
  // Templates know three levels.
  if (reading.effort == "minimal") reading.effort = "low";
  if (reading.effort == "xhigh") reading.effort = "high";
  return Ok{};
}

ApiResult<Ok> parse_text(ResponsesReading& reading) {
  Json format = JsonObject{{"type", "text"}};
  if (const JsonObject* text = TRY(reading.fields.object("text"))) {
    RequestFields inner(*text, "text.");
    TRY(inner.refuse("verbosity", {Json("medium")}));
    if (const JsonObject* given = TRY(inner.object("format"))) {
      RequestFields fields(*given, "text.format.");
      const std::string type = TRY(fields.text("type")).value_or("");
      if (type == "json_schema") {
        JsonObject schema = *given;
        schema.erase("type");
        reading.chat["response_format"] =
            JsonObject{{"type", type}, {"json_schema", std::move(schema)}};
      } else if (type == "json_object") {
        reading.chat["response_format"] = JsonObject{{"type", type}};
      } else if (type != "text") {
        return bad_field("text.format.type",
                         "\"text.format.type\" must be text, json_object or json_schema");
      }
      format = *given;
    }
    for (std::string& name : inner.ignored()) reading.ignored.push_back(std::move(name));
  }
  reading.request.echoed["text"] = JsonObject{{"format", std::move(format)}};
  return Ok{};
}

ApiResult<Ok> check_include(RequestFields& fields) {
  const Json* include = fields.get("include");
  if (include == nullptr) return Ok{};
  if (!include->is_array()) return bad_field("include", "\"include\" must be an array");
  for (const Json& what : include->get_array()) {
    if (what == "message.output_text.logprobs") {
      return unsupported_field("include",
                               "\"include\": \"message.output_text.logprobs\" is not supported; "
                               "/v1/chat/completions has logprobs");
    }
  }
  return Ok{};  // entries for unsupported tools have no effect; reasoning is never encrypted
}

// Answers are not stored, so fields that refer to an earlier one are refused.
ApiResult<Ok> parse_other_fields(ResponsesReading& reading) {
  RequestFields& fields = reading.fields;
  TRY(fields.boolean("store"));
  TRY(check_include(fields));
  if (TRY(fields.text("previous_response_id"))) {
    return unsupported_field("previous_response_id",
                             "\"previous_response_id\" is not supported, because no response is "
                             "stored; send the whole conversation as \"input\"");
  }
  TRY(fields.refuse("background", {Json(false)}));
  TRY(fields.refuse("top_logprobs", {Json(0)}));
  for (const char* key :
       {"conversation", "prompt", "max_tool_calls", "moderation", "context_management"}) {
    TRY(fields.refuse(key, {Json(JsonArray())}));
  }
  const std::string truncation = TRY(fields.text("truncation")).value_or("disabled");
  if (truncation != "disabled" && truncation != "auto") {
    return bad_field("truncation", "\"truncation\" must be auto or disabled");
  }
  if (truncation == "auto") {
    return unsupported_field("truncation", "\"truncation\": \"auto\" is not supported");
  }
  TRY(fields.refuse("service_tier", {Json("auto"), Json("default")}));
  for (const char* key :
       {"user", "safety_identifier", "prompt_cache_key", "prompt_cache_retention"}) {
    TRY(fields.text(key));
  }
  [[maybe_unused]] const JsonObject* metadata = TRY(fields.object("metadata"));
  return Ok{};
}

void echo_fields(ResponsesReading& reading) {
  echo(reading, "instructions", nullptr);
  echo(reading, "max_output_tokens", nullptr);
  echo(reading, "metadata", JsonObject());
  echo(reading, "parallel_tool_calls", true);
  echo(reading, "prompt_cache_key", nullptr);
  echo(reading, "safety_identifier", nullptr);
  echo(reading, "temperature", 1.0);
  echo(reading, "tool_choice", "auto");
  echo(reading, "tools", JsonArray());
  echo(reading, "top_p", 1.0);
  echo(reading, "truncation", "disabled");
  echo(reading, "user", nullptr);
}

// Errors found while the shared form is parsed use the names of chat completions.
ApiError in_responses_words(const ApiError& error) {
  return renamed_fields(error, {{"response_format.json_schema", "text.format"},
                                {"response_format", "text.format"},
                                {"max_tokens", "max_output_tokens"}});
}

}  // namespace

ApiResult<ResponsesRequest> parse_responses_request(std::string_view body) {
  const Json json = TRY(parse_body(body));
  ResponsesReading reading{RequestFields(json.get_object())};
  TRY(parse_responses_sampling(reading));
  TRY(parse_other_fields(reading));
  TRY(parse_responses_conversation(reading));
  TRY(parse_response_tools(reading.fields, reading.chat, reading.ignored));
  TRY(parse_reasoning(reading));
  TRY(parse_text(reading));
  echo_fields(reading);
  auto chat = parse_chat_fields(reading.chat);
  if (!chat.ok()) return in_responses_words(chat.error());
  ResponsesRequest request = std::move(reading.request);
  request.chat = std::move(chat.value());
  request.chat.reasoning_effort = std::move(reading.effort);
  request.chat.reasoning_is_hint = true;
  request.chat.options.ignored = std::move(reading.ignored);
  for (std::string& name : reading.fields.ignored()) {
    request.chat.options.ignored.push_back(std::move(name));
  }
  return request;
}

}  // namespace lockstep
