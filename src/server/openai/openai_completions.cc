#include "server/openai/openai_completions.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "server/chat/chat_prompt.h"
#include "server/generation/api_context.h"
#include "server/generation/fim_prompt.h"
#include "server/openai/stream_routes.h"

namespace lockstep {
namespace {

ApiResult<std::vector<int32_t>> prompt_ids(const TextInput& prompt, const Tokenizer& tokenizer,
                                           const ModelStatus& status) {
  std::vector<int32_t> ids;
  if (const auto* text = std::get_if<std::string>(&prompt)) {
    ids = encode_prompt(tokenizer, *text);
  } else {
    ids = std::get<std::vector<int32_t>>(prompt);
    TRY(check_token_ids(ids, tokenizer, "prompt"));
  }
  TRY(check_prompt(ids, status, "prompt"));
  return ids;
}

ApiResult<std::string> prompt_text(const TextInput& prompt, const Tokenizer& tokenizer) {
  if (const auto* text = std::get_if<std::string>(&prompt)) return *text;
  auto text = tokenizer.decode(std::get<std::vector<int32_t>>(prompt));
  if (!text.ok()) return to_api_error(text.error());
  return std::move(text.value());
}

class CompletionChoice final : public ChoiceWriter {
 public:
  explicit CompletionChoice(size_t index) : index_(index) {}

  Objects begin() override { return {}; }
  void logprobs(std::vector<TokenLogprobs> tokens) override {
    std::move(tokens.begin(), tokens.end(), std::back_inserter(logprobs_));
  }
  Objects text(std::string_view text) override {
    text_ += text;
    return {choice(text, take_logprobs(), nullptr)};
  }
  Objects end(std::string_view finish_reason) override {
    finish_reason_ = finish_reason;
    return {choice("", take_logprobs(), Json(finish_reason))};
  }
  JsonObject silence() const override { return choice("", nullptr, nullptr); }
  JsonObject whole() const override {
    Json logprobs = logprobs_.empty() ? Json() : completion_logprobs_json(logprobs_);
    return choice(text_, std::move(logprobs), Json(finish_reason_));
  }
  void drop_sent() override {
    text_.clear();
    logprobs_.erase(logprobs_.begin(), logprobs_.begin() + static_cast<ptrdiff_t>(logprobs_sent_));
    logprobs_sent_ = 0;
  }

 private:
  JsonObject choice(std::string_view text, Json logprobs, Json finish_reason) const {
    return {{"text", text},
            {"index", index_},
            {"logprobs", std::move(logprobs)},
            {"finish_reason", std::move(finish_reason)}};
  }
  // For a chunk: the logprobs not sent yet.
  Json take_logprobs() {
    const auto fresh = std::span(logprobs_).subspan(logprobs_sent_);
    logprobs_sent_ = logprobs_.size();
    return fresh.empty() ? Json() : completion_logprobs_json(fresh);
  }

  const size_t index_;
  std::string text_;
  std::string_view finish_reason_;
  std::vector<TokenLogprobs> logprobs_;
  size_t logprobs_sent_ = 0;
};

// Likely tokens listed with each token; -1 for no logprobs.
ApiResult<int> parse_completion_logprobs(RequestFields& fields, bool echoes) {
  const Json* value = fields.get("logprobs");
  if (value == nullptr || (value->is_bool() && !value->get_bool())) return -1;
  const auto top = TRY(fields.integer("logprobs", 0, kTopLogprobsMax));
  if (echoes) {
    return unsupported_field("logprobs",
                             "\"logprobs\" together with \"echo\" is not supported yet: the "
                             "prompt's tokens have none");
  }
  return static_cast<int>(top.value_or(0));
}

// Clients send an empty suffix for "none".
ApiResult<Ok> read_suffix(RequestFields& fields, CompletionRequest& request) {
  const auto suffix = TRY(fields.text("suffix"));
  if (!suffix || suffix->empty()) return Ok{};
  const bool has_ids = std::any_of(
      request.prompts.begin(), request.prompts.end(),
      [](const TextInput& prompt) { return !std::holds_alternative<std::string>(prompt); });
  if (has_ids) return bad_field("suffix", "\"suffix\" needs a prompt that is text");
  if (request.echoes) return bad_field("suffix", "\"suffix\" and \"echo\" exclude each other");
  request.suffix = *suffix;
  return Ok{};
}

constexpr OpenAiFormat kCompletionFormat = {"cmpl-", "text_completion", "text_completion"};

}  // namespace

ApiResult<CompletionRequest> parse_completion_request(std::string_view body) {
  const Json json = TRY(parse_body(body));
  return parse_completion_fields(json.get_object());
}

ApiResult<CompletionRequest> parse_completion_fields(const JsonObject& body) {
  RequestFields fields(body);
  CompletionRequest request;
  request.options = TRY(parse_generation_options(fields));
  request.prompts = TRY(parse_text_inputs(fields.get("prompt"), "prompt", kChoicesMax));
  request.echoes = TRY(fields.boolean("echo")).value_or(false);
  const auto max_tokens = TRY(fields.integer("max_tokens", 1, std::numeric_limits<int32_t>::max()));
  if (max_tokens) request.options.max_tokens = static_cast<int>(*max_tokens);
  const int n = request.options.n;
  if (request.prompts.size() * static_cast<size_t>(n) > static_cast<size_t>(kChoicesMax)) {
    return bad_field("n",
                     fmt::format("the prompts times \"n\" may be at most {} choices", kChoicesMax));
  }
  TRY(read_suffix(fields, request));
  request.options.top_logprobs = TRY(parse_completion_logprobs(fields, request.echoes));
  const auto best_of = TRY(fields.integer("best_of", 1, kChoicesMax));
  if (best_of && *best_of < n) return bad_field("best_of", "\"best_of\" must be at least \"n\"");
  if (best_of && *best_of > n) {
    return unsupported_field("best_of", "\"best_of\" greater than \"n\" is not supported yet");
  }
  for (std::string& name : fields.ignored()) request.options.ignored.push_back(std::move(name));
  return request;
}

ApiResult<GenerationPlan> plan_completion(const CompletionRequest& request,
                                          const ModelService& model) {
  const ModelStatus status = model.status();
  const std::shared_ptr<const Tokenizer> tokenizer = model.tokenizer();
  GenerationPlan plan;
  plan.max_tokens = request.options.max_tokens.value_or(kCompletionTokensDefault);
  PlanSize size;
  for (const TextInput& prompt : request.prompts) {
    GenerationPlan::Choice choice;
    if (request.suffix) {
      FimPrompt fim = TRY(fim_prompt(*tokenizer, std::get<std::string>(prompt), *request.suffix));
      choice.prompt = std::move(fim.ids);
      plan.stop_ids = std::move(fim.stop_ids);
      TRY(check_prompt(choice.prompt, status, "prompt"));
    } else {
      choice.prompt = TRY(prompt_ids(prompt, *tokenizer, status));
    }
    if (request.echoes) choice.echo = TRY(prompt_text(prompt, *tokenizer));
    plan.prompt_tokens += static_cast<int64_t>(choice.prompt.size());
    TRY(size.add(static_cast<size_t>(request.options.n), choice.prompt.size(), choice.echo.size()));
    for (int i = 0; i < request.options.n; ++i) {
      choice.seed = request.options.seed + static_cast<uint64_t>(i);
      plan.choices.push_back(choice);
    }
  }
  return plan;
}

void serve_completion(ApiContext& context, const HttpRequest& request, const HttpReply& reply) {
  const auto parsed = parse_completion_request(request.body);
  if (!parsed.ok()) return reply.send(error_response(parsed.error()));
  auto model = context.find_ready_model(parsed.value().options.model);
  if (!model.ok()) return reply.send(error_response(model.error()));
  auto plan = plan_completion(parsed.value(), *model.value());
  if (!plan.ok()) return reply.send(error_response(plan.error()));
  ChoiceWriters choices;
  for (size_t i = 0; i < plan.value().choices.size(); ++i) {
    choices.push_back(std::make_unique<CompletionChoice>(i));
  }
  const GenerationOptions& options = parsed.value().options;
  const auto target = answer_target(context, request, *model.value(), options.is_streamed, reply);
  if (!target.ok()) return reply.send(error_response(target.error()));
  context.generate(model.value(), std::move(plan.value()), kCompletionFormat, std::move(choices),
                   options, target.value());
}

}  // namespace lockstep
