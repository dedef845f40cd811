#include "server/anthropic/anthropic_messages.h"

#include <fmt/core.h>

#include <string>
#include <string_view>
#include <utility>

#include "server/anthropic/anthropic_request.h"
#include "server/anthropic/anthropic_writer.h"
#include "server/chat/chat_answer.h"
#include "server/chat/chat_plan.h"
#include "server/generation/api_context.h"
#include "server/request/request_id.h"
#include "server/request/sse.h"

namespace lockstep {
namespace {

bool is_claude(std::string_view name) {
  name = name.substr(name.rfind('/') + 1);  // npos + 1 is 0
  constexpr std::string_view kFamily = "claude";
  if (name.size() < kFamily.size()) return false;
  for (size_t i = 0; i < kFamily.size(); ++i) {
    if ((name[i] | 0x20) != kFamily[i]) return false;
  }
  return true;
}

// Claude Code requests small and large Anthropic models by name: all of them mean the model that
// the owner has configured, or the only one.
ApiResult<std::shared_ptr<ModelService>> find_message_model(const ApiContext& context,
                                                            const std::string& name) {
  auto found = context.find_ready_model(name);
  if (found.ok() || found.error().status != 404 || !is_claude(name)) return found;
  if (!context.claude_model().empty()) return context.find_ready_model(context.claude_model());
  auto only = context.find_ready_model("");
  if (only.ok() || only.error().status != 400) return only;
  found.error().message += "; `lockstep serve --claude-model NAME` says which one claude-* means";
  return found;
}

struct Prepared {
  std::shared_ptr<ModelService> model;
  ChatPrompt prompt;
};

ApiResult<Prepared> prepare(ApiContext& context, const MessagesRequest& request) {
  Prepared prepared;
  prepared.model = TRY(find_message_model(context, request.chat.options.model));
  prepared.prompt = TRY(make_chat_prompt(request.chat, *prepared.model, *context.sampled_calls()));
  return prepared;
}

// Claude Code recognises these words and shortens its conversation.
ApiResult<Ok> check_length(const ChatPrompt& prompt, const ModelStatus& status) {
  const size_t context = static_cast<size_t>(std::max(status.context, 0));
  if (context == 0 || prompt.ids.size() < context) return Ok{};
  return ApiError{
      400,
      fmt::format("prompt is too long: {} tokens > {} maximum", prompt.ids.size(), context - 1),
      "messages", "context_length_exceeded"};
}

ApiResult<Ok> answer_messages(ApiContext& context, const HttpRequest& http,
                              const HttpReply& reply) {
  MessagesRequest request = TRY(parse_messages_request(http.body, MessagesRoute::kMessages));
  Prepared prepared = TRY(prepare(context, request));
  const ModelStatus status = prepared.model->status();
  TRY(check_length(prepared.prompt, status));
  ChatPlan plan = TRY(plan_chat(request.chat, *prepared.model, std::move(prepared.prompt)));
  std::vector<std::string> ignored = request.chat.options.ignored;
  for (std::string& hint : unknown_hints(request.chat, *prepared.model)) {
    ignored.push_back(std::move(hint));
  }
  ChatAnswer answer;
  answer.writer = make_message_writer({.model = status.name,
                                       .request_id = std::string(request_id(http)),
                                       .max_tokens = plan.generation.max_tokens,
                                       .shows_thinking = request.shows_thinking,
                                       .tells_edits = request.tells_edits});
  answer.parser = std::move(plan.parsers.front());
  answer.sampled = context.sampled_calls();
  answer.is_streamed = request.chat.options.is_streamed;
  answer.stream_type = kSseContentType;
  answer.headers = ignored_fields_header(ignored);
  for (auto& header : warnings_header(plan.warnings)) answer.headers.push_back(std::move(header));
  context.generate(prepared.model, std::move(plan.generation), request.chat.options,
                   make_chat_answer(std::move(answer), reply), {reply, nullptr});
  return Ok{};
}

ApiResult<HttpResponse> count_tokens(ApiContext& context, const HttpRequest& http) {
  const MessagesRequest request =
      TRY(parse_messages_request(http.body, MessagesRoute::kCountTokens));
  const Prepared prepared = TRY(prepare(context, request));
  return HttpResponse{200, "application/json",
                      dump_json(JsonObject{{"input_tokens", prepared.prompt.ids.size()}}),
                      ignored_fields_header(request.chat.options.ignored)};
}

}  // namespace

void serve_messages(ApiContext& context, const HttpRequest& request, const HttpReply& reply) {
  const auto answered = answer_messages(context, request, reply);
  if (answered.ok()) return;
  reply.send(error_response(answered.error(), ErrorStyle::kAnthropic, request_id(request)));
}

void serve_count_tokens(ApiContext& context, const HttpRequest& request, const HttpReply& reply) {
  auto counted = count_tokens(context, request);
  reply.send(counted.ok()
                 ? std::move(counted.value())
                 : error_response(counted.error(), ErrorStyle::kAnthropic, request_id(request)));
}

}  // namespace lockstep
