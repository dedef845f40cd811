#include "server/chat/chat_plan.h"

#include <fmt/core.h>

#include <limits>
#include <random>
#include <utility>

#include "server/chat/chat_choice.h"
#include "server/generation/api_context.h"

namespace lockstep {
namespace {

// Limit over all choices: each is submitted with its own copy.
constexpr size_t kConstraintsBytesMax = size_t{16} << 20;
constexpr const char* kEffort = "reasoning_effort";
// Template variables that switch reasoning on or off.
constexpr const char* kThinkingVariables[] = {"enable_thinking", "thinking"};

bool wants_effort(const ChatRequest& request) {
  return request.reasoning_effort && *request.reasoning_effort != "none";
}

// The request's own variables, which take precedence, and those for reasoning that the template
// knows.
ApiResult<JsonObject> template_variables(const ChatRequest& request, const ChatFormat* format) {
  JsonObject variables = request.template_variables;
  std::optional<bool> thinks = request.thinks;
  if (!thinks && request.reasoning_effort == "none") thinks = false;
  if (thinks && format != nullptr) {
    for (const char* name : kThinkingVariables) {
      if (format->mentions(name)) variables.insert({{name, *thinks}});
    }
  }
  if (!wants_effort(request)) return variables;
  if (format != nullptr && format->mentions(kEffort)) {
    variables.insert({{kEffort, *request.reasoning_effort}});
  } else if (!request.reasoning_is_hint) {
    return unsupported_field(kEffort,
                             "this model's chat template does not support \"reasoning_effort\"");
  }
  return variables;
}

// Fields that a plain text cannot express must not be dropped silently.
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

int64_t count_calls(const Json& messages) {
  int64_t count = 0;
  for (const Json& message : messages.get_array()) {
    const Json* calls = find(message, "tool_calls");
    if (calls != nullptr) count += static_cast<int64_t>(calls->get_array().size());
  }
  return count;
}

uint64_t random_id_seed() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

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

ReasoningState reasoning_state(const ChatPrompt& prompt) {
  if (prompt.reasoning_is_open) return ReasoningState::kOpen;
  return prompt.reasoning_is_closed ? ReasoningState::kClosed : ReasoningState::kMayOpen;
}

// No constraint if nothing is requested and there are no tools.
ApiResult<MadeConstraint> constraint_of(const ChatRequest& request, const ModelService& model,
                                        const ChatPrompt& prompt,
                                        const OutputParser::Options& parser) {
  const ChatConstraint& asked = request.constraint;
  const bool has_markers = parser.format != nullptr && (!parser.format->section_begin.empty() ||
                                                        !parser.format->call_begin.empty());
  const bool is_free = asked.tools.is_null() || (asked.hides_tools && !has_markers);
  if (is_free && !asked.answer) return MadeConstraint{};
  if (asked.calls == CallChoice::kRequired && request.continue_final_message) {
    return bad_field("tool_choice",
                     "a message that is continued cannot be forced to begin with a call");
  }
  AnswerOptions options;
  options.format = parser.format;
  options.tools = asked.tools.is_null() ? nullptr : &asked.tools;
  options.tool_types = parser.tools;
  options.calls = asked.calls;
  options.is_parallel = asked.is_parallel;
  options.reasoning = reasoning_state(prompt);
  options.continues_text = request.continue_final_message;
  options.answer = asked.answer;
  return make_constraint(options, *model.tokenizer());
}

}  // namespace

ApiResult<ChatPrompt> make_chat_prompt(const ChatRequest& request, const ModelService& model,
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
  TRY(check_work());
  if (prompt.ok()) return std::move(prompt.value());
  // Any error, even a limit reached while rendering, is about this conversation.
  return ApiError{400, prompt.error().message, "messages", "chat_template_error"};
}

ApiResult<ChatPlan> plan_chat(const ChatRequest& request, const ModelService& model,
                              ChatPrompt prompt) {
  const ModelStatus status = model.status();
  ChatPlan made;
  GenerationPlan& plan = made.generation;
  GenerationPlan::Choice choice;
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
  auto held_to = constraint_of(request, model, prompt, parser);
  TRY(check_work());
  MadeConstraint constraint = TRY(std::move(held_to));
  plan.constraint = std::move(constraint.text);
  if (plan.constraint.size() * static_cast<size_t>(request.options.n) > kConstraintsBytesMax) {
    return bad_field("n", fmt::format("the schemas of {} answers have more than {} bytes together; "
                                      "ask for fewer answers, or use a smaller schema",
                                      request.options.n, kConstraintsBytesMax));
  }
  made.warnings = std::move(constraint.warnings);
  for (int i = 0; i < request.options.n; ++i) {
    choice.seed = request.options.seed + static_cast<uint64_t>(i);
    plan.choices.push_back(choice);
    parser.id_seed = random_id_seed();
    made.parsers.push_back(parser);
  }
  return made;
}

std::vector<std::string> unknown_hints(const ChatRequest& request, const ModelService& model) {
  std::vector<std::string> unknown;
  const ModelChatFormat found = model.chat_format();
  const ChatFormat* format = found.ok() ? found.value().get() : nullptr;
  const ToolFormat* output = format != nullptr ? format->tool_format(false) : nullptr;
  const bool reasons =
      output != nullptr && (output->is_harmony || !output->reasoning_begin.empty());
  if (request.thinks == true && !reasons) unknown.emplace_back("thinking");
  const bool knows_effort = format != nullptr && format->mentions(kEffort);
  if (wants_effort(request) && !knows_effort) unknown.emplace_back("effort");
  return unknown;
}

}  // namespace lockstep
