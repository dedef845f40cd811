#include "server/openai/openai_responses.h"

#include <string>
#include <utility>

#include "server/chat/chat_answer.h"
#include "server/chat/chat_plan.h"
#include "server/generation/api_context.h"
#include "server/openai/responses_request.h"
#include "server/openai/responses_writer.h"
#include "server/request/sse.h"

namespace lockstep {
namespace {

ApiResult<Ok> answer_responses(ApiContext& context, const HttpRequest& http,
                               const HttpReply& reply) {
  ResponsesRequest request = TRY(parse_responses_request(http.body));
  const auto model = TRY(context.find_ready_model(request.chat.options.model));
  ChatPlan plan = TRY(plan_chat(
      request.chat, *model, TRY(make_chat_prompt(request.chat, *model, *context.sampled_calls()))));
  std::vector<std::string> ignored = request.chat.options.ignored;
  for (std::string& hint : unknown_hints(request.chat, *model)) {
    ignored.push_back(std::move(hint));
  }
  ChatAnswer answer;
  answer.writer = make_response_writer({.model = model->status().name,
                                        .echoed = std::move(request.echoed),
                                        .wants_summary = request.wants_summary});
  answer.parser = std::move(plan.parsers.front());
  answer.sampled = context.sampled_calls();
  answer.is_streamed = request.chat.options.is_streamed;
  answer.stream_type = kSseContentType;
  answer.headers = ignored_fields_header(ignored);
  for (auto& header : warnings_header(plan.warnings)) answer.headers.push_back(std::move(header));
  context.generate(model, std::move(plan.generation), request.chat.options,
                   make_chat_answer(std::move(answer), reply), {reply, nullptr});
  return Ok{};
}

}  // namespace

void serve_responses(ApiContext& context, const HttpRequest& request, const HttpReply& reply) {
  const auto answered = answer_responses(context, request, reply);
  if (!answered.ok()) reply.send(error_response(answered.error()));
}

void serve_stored_response(ApiContext&, const HttpRequest&, const HttpReply& reply) {
  reply.send(
      error_response({404, "no response is stored here: POST /v1/responses returns each only once",
                      "", "response_not_found"}));
}

}  // namespace lockstep
