#include "server/openai_chat.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "server/api_context.h"

namespace lockstep {
namespace {

constexpr std::array<std::string_view, 5> kRoles = {"system", "developer", "user", "assistant",
                                                    "tool"};

ApiResult<std::string> parse_part(const Json& part, const std::string& param) {
  if (!part.is_object()) return bad_field(param, "a content part must be an object");
  RequestFields fields(part.get_object(), param + ".");
  const std::string type = TRY(fields.text("type")).value_or("");
  if (type == "image_url" || type == "input_image" || type == "image") {
    return unsupported_field(param,
                             "images are not supported: lockstep computes the text part of models");
  }
  if (type != "text") {
    return unsupported_field(
        param, fmt::format("content parts of type \"{}\" are not supported yet, only \"text\"",
                           type.substr(0, 64)));
  }
  const auto text = TRY(fields.text("text"));
  if (!text) return bad_field(param, "a text part must have a \"text\"");
  return *text;
}

ApiResult<std::string> parse_content(const Json* content, const std::string& param) {
  if (content == nullptr) return std::string();
  if (content->is_string()) return std::string(content->get_string());
  if (!content->is_array()) {
    return bad_field(param, "a message's \"content\" must be a string, null or an array of parts");
  }
  std::string text;
  for (const Json& part : content->get_array()) text += TRY(parse_part(part, param));
  return text;
}

ApiResult<ChatMessage> parse_message(const Json& value, const std::string& param) {
  if (!value.is_object()) return bad_field(param, "a message must be an object");
  RequestFields fields(value.get_object(), param + ".");
  ChatMessage message;
  message.role = TRY(fields.text("role")).value_or("");
  if (std::find(kRoles.begin(), kRoles.end(), message.role) == kRoles.end()) {
    return bad_field(param + ".role",
                     "a message's \"role\" must be system, developer, user, assistant or tool");
  }
  message.text = TRY(parse_content(fields.get("content"), param + ".content"));
  TRY(fields.refuse("tool_calls", {Json(JsonArray())}));
  TRY(fields.refuse("function_call"));
  TRY(fields.refuse("audio"));
  return message;
}

ApiResult<std::vector<ChatMessage>> parse_messages(const Json* value) {
  if (value == nullptr) return bad_field("messages", "\"messages\" is required");
  if (!value->is_array() || value->get_array().empty()) {
    return bad_field("messages", "\"messages\" must be an array that is not empty");
  }
  std::vector<ChatMessage> messages;
  for (const Json& one : value->get_array()) {
    messages.push_back(TRY(parse_message(one, fmt::format("messages[{}]", messages.size()))));
  }
  return messages;
}

// Without tools the fields that steer their use have nothing to steer: their neutral values pass.
ApiResult<Ok> refuse_unsupported_chat(RequestFields& fields) {
  JsonArray text_only;
  text_only.emplace_back("text");
  TRY(fields.refuse("tools", {Json(JsonArray())}));
  TRY(fields.refuse("tool_choice", {Json("none"), Json("auto")}));
  TRY(fields.boolean("parallel_tool_calls"));
  TRY(fields.refuse("functions", {Json(JsonArray())}));
  TRY(fields.refuse("function_call", {Json("none"), Json("auto")}));
  TRY(fields.refuse("response_format", {Json(JsonObject{{"type", "text"}})}));
  TRY(fields.refuse("logprobs", {Json(false)}));
  TRY(fields.refuse("top_logprobs", {Json(0)}));
  TRY(fields.refuse("reasoning_effort", {Json("none")}));
  TRY(fields.refuse("chat_template_kwargs", {Json(JsonObject())}));
  TRY(fields.refuse("modalities", {Json(std::move(text_only))}));
  for (const char* key : {"audio", "prediction", "web_search_options"}) TRY(fields.refuse(key));
  return Ok{};
}

ApiResult<GenerationPlan> plan_chat(const ChatRequest& request, const ModelService& model) {
  const ModelStatus status = model.status();
  GenerationPlan plan;
  GenerationPlan::Choice choice;
  choice.prompt = encode_prompt(*model.tokenizer(), chat_prompt(request));
  TRY(check_prompt(choice.prompt, status, "messages"));
  const int prompt_tokens = static_cast<int>(choice.prompt.size());
  const int room = status.context > 0 ? status.context - prompt_tokens
                                      : std::numeric_limits<int32_t>::max() - prompt_tokens;
  plan.max_tokens = request.options.max_tokens.value_or(room);
  plan.prompt_tokens = prompt_tokens;
  plan.strips_leading_space = true;
  for (int i = 0; i < request.options.n; ++i) {
    choice.seed = request.options.sampling.seed + static_cast<uint64_t>(i);
    plan.choices.push_back(choice);
  }
  return plan;
}

JsonObject delta_choice(size_t index, JsonObject delta, Json finish_reason) {
  return {{"index", index},
          {"delta", std::move(delta)},
          {"logprobs", nullptr},
          {"finish_reason", std::move(finish_reason)}};
}

JsonObject first_choice(size_t index) {
  return delta_choice(index, {{"role", "assistant"}, {"content", ""}}, nullptr);
}

JsonObject text_choice(size_t index, std::string_view text) {
  return delta_choice(index, {{"content", text}}, nullptr);
}

JsonObject end_choice(size_t index, std::string_view finish_reason) {
  return delta_choice(index, {}, Json(finish_reason));
}

JsonObject whole_choice(size_t index, std::string_view text, std::string_view finish_reason) {
  return {{"index", index},
          {"message", JsonObject{{"role", "assistant"}, {"content", text}, {"refusal", nullptr}}},
          {"logprobs", nullptr},
          {"finish_reason", finish_reason}};
}

constexpr OpenAiFormat kChatFormat = {"chatcmpl-",  "chat.completion", "chat.completion.chunk",
                                      first_choice, text_choice,       end_choice,
                                      whole_choice};

}  // namespace

ApiResult<ChatRequest> parse_chat_request(std::string_view body) {
  const Json json = TRY(parse_body(body));
  RequestFields fields(json.get_object());
  ChatRequest request;
  request.options = TRY(parse_generation_options(fields));
  request.messages = TRY(parse_messages(fields.get("messages")));
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  const auto old_name = TRY(fields.integer("max_tokens", 1, kMost));
  const auto new_name = TRY(fields.integer("max_completion_tokens", 1, kMost));
  if (old_name) request.options.max_tokens = static_cast<int>(*old_name);
  if (new_name) request.options.max_tokens = static_cast<int>(*new_name);
  TRY(refuse_unsupported_chat(fields));
  for (std::string& name : fields.ignored()) request.options.ignored.push_back(std::move(name));
  return request;
}

std::string chat_prompt(const ChatRequest& request) {
  std::string prompt;
  for (const ChatMessage& message : request.messages) {
    if (!prompt.empty()) prompt += '\n';
    prompt += message.text;
  }
  return prompt;
}

void serve_chat(ApiContext& context, const HttpRequest& request, const HttpReply& reply) {
  const auto parsed = parse_chat_request(request.body);
  if (!parsed.ok()) return reply.send(error_response(parsed.error()));
  auto model = context.find_ready_model(parsed.value().options.model);
  if (!model.ok()) return reply.send(error_response(model.error()));
  auto plan = plan_chat(parsed.value(), *model.value());
  if (!plan.ok()) return reply.send(error_response(plan.error()));
  context.generate(model.value(), std::move(plan.value()), kChatFormat, parsed.value().options,
                   reply);
}

}  // namespace lockstep
