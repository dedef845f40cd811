#include "server/openai/verify_route.h"

#include <fmt/core.h>

#include <string>
#include <utility>
#include <vector>

#include "base/version.h"
#include "json/json.h"
#include "server/generation/api_context.h"
#include "server/generation/receipt.h"
#include "server/generation/verify_job.h"
#include "server/openai/openai_chat.h"
#include "server/openai/openai_completions.h"
#include "server/request/request_fields.h"
#include "server/request/text_inputs.h"

namespace lockstep {
namespace {

constexpr std::string_view kChatRoute = "chat";
constexpr std::string_view kCompletionsRoute = "completions";

// A request that was answered, as it is planned here.
struct AnsweredRequest {
  std::shared_ptr<ModelService> model;
  GenerationPlan plan;
};

struct Claim {
  Receipt receipt;
  std::shared_ptr<ModelService> model;
  GenerateRequest request;
  std::vector<int32_t> answer;
};

ApiError not_the_same(std::string message, std::string code) {
  return {409, std::move(message), "receipt", std::move(code)};
}

// Checked before anything is computed.
ApiResult<Ok> check_model(const Receipt& receipt, const ModelStatus& status) {
  if (status.identity.empty()) return ApiContext::no_identity(status);
  if (receipt.model == status.identity) return Ok{};
  std::string message = fmt::format(
      "the receipt is of another model than \"{}\" here, or of the same one with other options of "
      "loading: load the one that gave the answer",
      status.name);
  if (receipt.version != kVersion) {
    message += fmt::format(" with lockstep {}, this is {}", receipt.version, kVersion);
  }
  return not_the_same(std::move(message), "other_model");
}

ApiResult<Ok> check_seed(const JsonObject& body, uint64_t named, const Receipt& receipt) {
  const Json* seed = body.if_contains("seed");
  if (seed == nullptr || seed->is_null() || named == receipt.seed) return Ok{};
  return not_the_same("the request has another \"seed\" than the receipt", "other_request");
}

ApiResult<Ok> check_options(const JsonObject& body, GenerationOptions& options,
                            const Receipt& receipt) {
  if (options.n != 1) return bad_field("n", "a receipt is of one answer: \"n\" must be 1");
  TRY(check_seed(body, options.seed, receipt));
  options.seed = receipt.seed;
  return Ok{};
}

ApiResult<AnsweredRequest> read_chat(ApiContext& context, const JsonObject& body,
                                     const Receipt& receipt) {
  ChatRequest request = TRY(parse_chat_fields(body));
  TRY(check_options(body, request.options, receipt));
  auto model = TRY(context.find_ready_model(request.options.model));
  TRY(check_model(receipt, model->status()));
  ChatPlan plan = TRY(plan_chat_answer(request, *model, *context.sampled_calls()));
  auto whole = complete_plan(std::move(plan.generation), request.options, *model);
  return AnsweredRequest{std::move(model), std::move(whole)};
}

ApiResult<AnsweredRequest> read_completion(ApiContext& context, const JsonObject& body,
                                           const Receipt& receipt) {
  CompletionRequest request = TRY(parse_completion_fields(body));
  TRY(check_options(body, request.options, receipt));
  if (request.prompts.size() != 1) {
    return bad_field("prompt", "a receipt is of one answer: \"prompt\" must be one prompt");
  }
  auto model = TRY(context.find_ready_model(request.options.model));
  TRY(check_model(receipt, model->status()));
  GenerationPlan plan = TRY(plan_completion(request, *model));
  auto whole = complete_plan(std::move(plan), request.options, *model);
  return AnsweredRequest{std::move(model), std::move(whole)};
}

ApiResult<AnsweredRequest> read_request(ApiContext& context, const JsonObject& body,
                                        const std::string& route, const Receipt& receipt) {
  if (route == kChatRoute) return read_chat(context, body, receipt);
  if (route == kCompletionsRoute) return read_completion(context, body, receipt);
  return bad_field("route",
                   "\"route\" must be \"chat\" or \"completions\", by which the answer came");
}

ApiResult<std::vector<int32_t>> read_ids(const Json& json, const Tokenizer& tokenizer) {
  std::vector<int32_t> ids;
  if (!json.is_array())
    return bad_field("answer_ids", "\"answer_ids\" must be a list of token ids");
  for (const Json& one : json.get_array()) {
    const auto id = number_of<int32_t>(one);
    if (!id || *id < 0)
      return bad_field("answer_ids", "\"answer_ids\" must be a list of token ids");
    ids.push_back(*id);
  }
  TRY(check_token_ids(ids, tokenizer, "answer_ids"));
  return ids;
}

ApiResult<std::vector<int32_t>> read_answer(RequestFields& fields, const ModelService& model,
                                            size_t prompt_tokens) {
  const std::shared_ptr<const Tokenizer> tokenizer = model.tokenizer();
  const Json* given = fields.get("answer_ids");
  const auto text = TRY(fields.text("answer"));
  if ((given != nullptr) == text.has_value()) {
    return bad_field("answer_ids", "the answer is needed once: as \"answer_ids\" or as \"answer\"");
  }
  std::vector<int32_t> ids =
      given != nullptr ? TRY(read_ids(*given, *tokenizer)) : tokenizer->encode(*text, {});
  TRY(check_work());
  const int context = model.status().context;
  if (context > 0 && prompt_tokens + ids.size() > static_cast<size_t>(context) + 1) {
    return ApiError{400,
                    fmt::format("prompt and answer have {} tokens, but the context has {}",
                                prompt_tokens + ids.size(), context),
                    given != nullptr ? "answer_ids" : "answer", "context_length_exceeded"};
  }
  return ids;
}

ApiResult<Claim> read_claim(ApiContext& context, std::string_view text) {
  const Json json = TRY(parse_body(text));
  const JsonObject& body = json.get_object();
  RequestFields fields(body);
  const auto given = TRY(fields.text("receipt"));
  if (!given) return missing_field("receipt");
  const auto route = TRY(fields.text("route"));
  if (!route) return missing_field("route");
  Claim claim{.receipt = TRY(parse_receipt(*given)), .model = {}, .request = {}, .answer = {}};
  AnsweredRequest answered = TRY(read_request(context, body, *route, claim.receipt));
  claim.model = std::move(answered.model);
  claim.request = request_of(answered.plan, 0, claim.model->stop_ids());
  claim.answer = TRY(read_answer(fields, *claim.model, claim.request.prompt.size()));
  if (claim.answer.empty() && claim.receipt.end != AnswerEnd::kToken) {
    return bad_field("answer_ids", "an answer that the model did not end has at least one token");
  }
  if (request_hash(claim.request, answered.plan.stop) == claim.receipt.request) return claim;
  return not_the_same(
      "the request is not the one of the receipt: its prompt, an option or the seed differs",
      "other_request");
}

void send_verdict(const HttpReply& reply, const Verdict& verdict, size_t ranks,
                  bool is_receipts_answer, size_t answer_size) {
  auto difference = verdict.first_difference;
  // All of it is right, but more or less of it was answered.
  if (!difference && !is_receipts_answer) difference = answer_size;
  JsonObject json{{"same", !difference.has_value()},
                  {"matches_receipt", is_receipts_answer},
                  {"ranks", ranks},
                  {"seconds", verdict.seconds}};
  if (difference) json["first_difference"] = *difference;
  reply.send({200, "application/json", dump_json(json), {}});
}

}  // namespace

void serve_verify(ApiContext& context, const HttpRequest& request, const HttpReply& reply) {
  auto read = read_claim(context, request.body);
  if (!read.ok()) return reply.send(error_response(read.error()));
  Claim claim = std::move(read.value());
  const bool is_receipts_answer =
      answer_hash(claim.answer, claim.receipt.end) == claim.receipt.answer;
  const size_t ranks = claim.model->status().ranks.size();
  const size_t size = claim.answer.size();
  VerifyJob::start(claim.model, std::move(claim.request), std::move(claim.answer),
                   claim.receipt.end, reply, [=](const ApiResult<Verdict>& verdict) {
                     if (!verdict.ok()) return reply.send(error_response(verdict.error()));
                     send_verdict(reply, verdict.value(), ranks, is_receipts_answer, size);
                   });
}

}  // namespace lockstep
