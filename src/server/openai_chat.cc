#include "server/openai_chat.h"

#include <fmt/core.h>

#include <limits>
#include <random>
#include <utility>

#include "server/api_context.h"
#include "server/chat_choice.h"
#include "server/chat_messages.h"
#include "server/chat_prompt.h"

namespace lockstep {
namespace {

// "none" hides the tools from the model, which is the one way to be sure; "auto" is what a template
// asks for. Anything else would have to force the model.
ApiResult<Json> parse_tool_fields(RequestFields& fields) {
  Json tools = TRY(parse_tools(fields.get("tools")));
  const Json* choice = fields.get("tool_choice");
  const bool is_hidden = choice != nullptr && *choice == Json("none");
  if (choice != nullptr && !is_hidden && *choice != Json("auto")) {
    return unsupported_field("tool_choice",
                             "\"tool_choice\" can be \"none\" or \"auto\"; to force a call is not "
                             "supported yet");
  }
  const bool is_parallel = TRY(fields.boolean("parallel_tool_calls")).value_or(true);
  if (is_hidden || tools.is_null()) return Json();
  if (!is_parallel) {
    return unsupported_field("parallel_tool_calls",
                             "\"parallel_tool_calls\": false is not supported yet");
  }
  return tools;
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

ApiResult<Ok> refuse_unsupported_chat(RequestFields& fields) {
  JsonArray text_only;
  text_only.emplace_back("text");
  TRY(fields.refuse("functions", {Json(JsonArray())}));
  TRY(fields.refuse("function_call", {Json("none"), Json("auto")}));
  TRY(fields.refuse("response_format", {Json(JsonObject{{"type", "text"}})}));
  TRY(fields.refuse("logprobs", {Json(false)}));
  TRY(fields.refuse("top_logprobs", {Json(0)}));
  TRY(fields.refuse("modalities", {Json(std::move(text_only))}));
  for (const char* key :
       {"audio", "prediction", "web_search_options", "chat_template", "documents"}) {
    TRY(fields.refuse(key));
  }
  return Ok{};
}

// The request's own variables, and reasoning_effort where the template knows such a thing.
ApiResult<JsonObject> template_variables(const ChatRequest& request, const ChatFormat* format) {
  constexpr const char* kEffort = "reasoning_effort";
  JsonObject variables = request.template_variables;
  if (!request.reasoning_effort || *request.reasoning_effort == "none") return variables;
  if (format == nullptr || !format->mentions(kEffort)) {
    return unsupported_field(
        kEffort, "\"reasoning_effort\" means nothing to the chat template of this model");
  }
  variables.insert({{kEffort, *request.reasoning_effort}});  // chat_template_kwargs go first
  return variables;
}

// What a plain text cannot say must not get lost in silence.
ApiResult<Ok> check_plain(const ChatRequest& request) {
  const auto refuse = [](const char* field) {
    return unsupported_field(
        field, fmt::format("\"{}\" needs a chat template, and the model has none", field));
  };
  if (!request.tools.is_null()) return refuse("tools");
  if (!request.template_variables.empty()) return refuse("chat_template_kwargs");
  for (const Json& message : request.messages.get_array()) {
    if (find(message, "tool_calls") != nullptr) return refuse("tool_calls");
  }
  return Ok{};
}

ApiResult<ChatPrompt> make_prompt(const ChatRequest& request, const ModelService& model,
                                  const SampledCalls& sampled) {
  const ModelChatFormat format = model.chat_format();
  if (!format.ok()) {
    return ApiError{400,
                    fmt::format("the chat template of \"{}\" cannot be used: {}; /v1/completions "
                                "works without it",
                                model.status().name, format.error().message),
                    "model", "model_chat_template"};
  }
  if (format.value() == nullptr) TRY(check_plain(request));
  const JsonObject variables = TRY(template_variables(request, format.value().get()));
  ChatInput input;
  input.messages = &request.messages;
  input.tools = request.tools.is_null() ? nullptr : &request.tools;
  input.sampled = &sampled;
  input.variables = &variables;
  input.add_generation_prompt = request.add_generation_prompt;
  input.continue_final_message = request.continue_final_message;
  input.now = local_time_now();
  auto prompt = chat_prompt(model, input);
  if (prompt.ok()) return std::move(prompt.value());
  // Whatever it is, also a limit that a rendering reached, is about this conversation.
  return ApiError{400, prompt.error().message, "messages", "chat_template_error"};
}

int64_t count_calls(const Json& messages) {
  int64_t count = 0;
  for (const Json& message : messages.get_array()) {
    const Json* calls = find(message, "tool_calls");
    if (calls != nullptr) count += static_cast<int64_t>(calls->get_array().size());
  }
  return count;
}

uint64_t random_seed() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

// A request to generate, and who reads what is generated.
struct ChatPlan {
  GenerationPlan generation;
  ChoiceWriters choices;
};

OutputParser::Options parser_options(const ChatRequest& request, const ChatFormat* format,
                                     bool reasoning_is_open) {
  OutputParser::Options options;
  const bool has_tools = !request.tools.is_null();
  if (format != nullptr) options.format = format->tool_format(has_tools);
  if (has_tools) options.tools = std::make_shared<const ToolSet>(request.tools);
  options.reasoning_is_open = reasoning_is_open;
  options.continues_text = request.continue_final_message;
  options.calls_before = static_cast<size_t>(count_calls(request.messages));
  return options;
}

ApiResult<ChatPlan> plan_chat(const ChatRequest& request, const ModelService& model,
                              const std::shared_ptr<SampledCalls>& sampled) {
  const ModelStatus status = model.status();
  ChatPlan made;
  GenerationPlan& plan = made.generation;
  GenerationPlan::Choice choice;
  ChatPrompt prompt = TRY(make_prompt(request, model, *sampled));
  choice.prompt = std::move(prompt.ids);
  TRY(check_prompt(choice.prompt, status, "messages"));
  const int prompt_tokens = static_cast<int>(choice.prompt.size());
  const int room = status.context > 0 ? status.context - prompt_tokens
                                      : std::numeric_limits<int32_t>::max() - prompt_tokens;
  plan.max_tokens = request.options.max_tokens.value_or(room);
  plan.prompt_tokens = prompt_tokens;
  plan.strips_leading_space = !request.continue_final_message;
  const auto format = model.chat_format();
  OutputParser::Options parser = parser_options(
      request, format.ok() ? format.value().get() : nullptr, prompt.reasoning_is_open);
  if (parser.format != nullptr) {
    plan.printed_tokens = marker_tokens(*parser.format, *model.tokenizer());
  }
  for (int i = 0; i < request.options.n; ++i) {
    choice.seed = request.options.seed + static_cast<uint64_t>(i);
    plan.choices.push_back(choice);
    parser.id_seed = random_seed();
    made.choices.push_back(make_chat_choice(static_cast<size_t>(i), parser, sampled));
  }
  return made;
}

constexpr OpenAiFormat kChatFormat = {"chatcmpl-", "chat.completion", "chat.completion.chunk"};

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
  request.tools = TRY(parse_tool_fields(fields));
  TRY(parse_template_fields(fields, request));
  TRY(refuse_unsupported_chat(fields));
  for (std::string& name : fields.ignored()) request.options.ignored.push_back(std::move(name));
  return request;
}

void serve_chat(ApiContext& context, const HttpRequest& request, const HttpReply& reply) {
  const auto parsed = parse_chat_request(request.body);
  if (!parsed.ok()) return reply.send(error_response(parsed.error()));
  auto model = context.find_ready_model(parsed.value().options.model);
  if (!model.ok()) return reply.send(error_response(model.error()));
  auto plan = plan_chat(parsed.value(), *model.value(), context.sampled_calls());
  if (!plan.ok()) return reply.send(error_response(plan.error()));
  context.generate(model.value(), std::move(plan.value().generation), kChatFormat,
                   std::move(plan.value().choices), parsed.value().options, reply);
}

}  // namespace lockstep
