#include "server/openai/openai_chat.h"

#include <fmt/core.h>

#include <limits>
#include <utility>

#include "server/chat/chat_choice.h"
#include "server/chat/chat_messages.h"
#include "server/chat/chat_plan.h"
#include "server/generation/api_context.h"
#include "server/openai/stream_routes.h"

namespace lockstep {
namespace {

// "none" hides the tools from the model and also constrains it not to write a call.
ApiResult<Ok> parse_answer_fields(RequestFields& fields, ChatRequest& request) {
  Json tools = TRY(parse_tools(fields.get("tools")));
  request.constraint = TRY(parse_tool_choice(fields, tools));
  request.constraint.answer = TRY(parse_answer_form(fields));
  if (!request.constraint.hides_tools) request.tools = std::move(tools);
  return Ok{};
}

ApiResult<Ok> parse_template_fields(RequestFields& fields, ChatRequest& request) {
  if (const JsonObject* variables = TRY(fields.object("chat_template_kwargs"))) {
    request.template_variables = *variables;
  }
  request.reasoning_effort = TRY(fields.text("reasoning_effort"));
  const auto add_prompt = TRY(fields.boolean("add_generation_prompt"));
  request.continue_final_message = TRY(fields.boolean("continue_final_message")).value_or(false);
  request.add_generation_prompt = add_prompt.value_or(!request.continue_final_message);
  if (!request.continue_final_message) return Ok{};
  if (request.add_generation_prompt) {
    return bad_field("continue_final_message",
                     "\"continue_final_message\" and \"add_generation_prompt\" exclude each other");
  }
  const Json* role = find(request.messages.get_array().back(), "role");
  if (*role == Json("assistant")) return Ok{};
  return bad_field("continue_final_message",
                   "\"continue_final_message\" needs a last message of the assistant");
}

ApiResult<int> parse_chat_logprobs(RequestFields& fields) {
  const bool is_wanted = TRY(fields.boolean("logprobs")).value_or(false);
  const auto top = TRY(fields.integer("top_logprobs", 0, kTopLogprobsMax));
  if (!is_wanted && top.value_or(0) > 0) {
    return bad_field("top_logprobs", "\"top_logprobs\" needs \"logprobs\": true");
  }
  return is_wanted ? static_cast<int>(top.value_or(0)) : -1;
}

ApiResult<Ok> refuse_unsupported_chat(RequestFields& fields) {
  JsonArray text_only;
  text_only.emplace_back("text");
  TRY(fields.refuse("functions", {Json(JsonArray())}));
  TRY(fields.refuse("function_call", {Json("none"), Json("auto")}));
  TRY(fields.refuse("modalities", {Json(std::move(text_only))}));
  TRY(fields.refuse("verbosity", {Json("medium")}));
  TRY(fields.refuse("service_tier", {Json("auto"), Json("default")}));
  for (const char* key :
       {"audio", "prediction", "web_search_options", "chat_template", "documents"}) {
    TRY(fields.refuse(key));
  }
  // The user, and hints for caching: nothing here depends on them.
  for (const char* key : {"safety_identifier", "prompt_cache_key", "prompt_cache_retention"}) {
    TRY(fields.text(key));
  }
  return Ok{};
}

constexpr OpenAiFormat kChatFormat = {"chatcmpl-", "chat.completion", "chat.completion.chunk"};

}  // namespace

ApiResult<ChatRequest> parse_chat_request(std::string_view body) {
  const Json json = TRY(parse_body(body));
  return parse_chat_fields(json.get_object());
}

ApiResult<ChatRequest> parse_chat_fields(const JsonObject& body) {
  RequestFields fields(body);
  ChatRequest request;
  request.options = TRY(parse_generation_options(fields));
  request.messages = TRY(parse_messages(fields.get("messages")));
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  const auto old_name = TRY(fields.integer("max_tokens", 1, kMost));
  const auto new_name = TRY(fields.integer("max_completion_tokens", 1, kMost));
  if (old_name) request.options.max_tokens = static_cast<int>(*old_name);
  if (new_name) request.options.max_tokens = static_cast<int>(*new_name);
  TRY(parse_answer_fields(fields, request));
  TRY(parse_template_fields(fields, request));
  request.options.top_logprobs = TRY(parse_chat_logprobs(fields));
  TRY(refuse_unsupported_chat(fields));
  for (std::string& name : fields.ignored()) request.options.ignored.push_back(std::move(name));
  return request;
}

ApiResult<ChatPlan> plan_chat_answer(const ChatRequest& request, const ModelService& model,
                                     const SampledCalls& sampled) {
  return plan_chat(request, model, TRY(make_chat_prompt(request, model, sampled)));
}

void serve_chat(ApiContext& context, const HttpRequest& request, const HttpReply& reply) {
  auto parsed = parse_chat_request(request.body);
  if (!parsed.ok()) return reply.send(error_response(parsed.error()));
  auto model = context.find_ready_model(parsed.value().options.model);
  if (!model.ok()) return reply.send(error_response(model.error()));
  auto plan = plan_chat_answer(parsed.value(), *model.value(), *context.sampled_calls());
  if (!plan.ok()) return reply.send(error_response(plan.error()));
  parsed.value().options.warnings = std::move(plan.value().warnings);
  ChoiceWriters choices;
  for (OutputParser::Options& parser : plan.value().parsers) {
    choices.push_back(make_chat_choice(choices.size(), std::move(parser), context.sampled_calls()));
  }
  const GenerationOptions& options = parsed.value().options;
  const auto target = answer_target(context, request, *model.value(), options.is_streamed, reply);
  if (!target.ok()) return reply.send(error_response(target.error()));
  context.generate(model.value(), std::move(plan.value().generation), kChatFormat,
                   std::move(choices), options, target.value());
}

}  // namespace lockstep
