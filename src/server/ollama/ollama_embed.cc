#include "server/ollama/ollama_embed.h"

#include <fmt/core.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/chat/chat_prompt.h"
#include "server/generation/api_context.h"
#include "server/generation/embedding_job.h"
#include "server/ollama/ollama_models.h"
#include "server/ollama/ollama_request.h"
#include "server/openai/openai_embeddings.h"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;
using Prompts = std::vector<std::vector<int32_t>>;

// Everything in an answer besides the vectors.
struct EmbedAnswer {
  OllamaEmbedRequest request;
  std::string model;
  int64_t prompt_tokens = 0;
  Clock::time_point began;
};

// The token ids of a text. A text that is too long loses its last tokens, except the one that ends
// it.
ApiResult<std::vector<int32_t>> embed_prompt_of(const std::string& text, bool truncates,
                                                const ModelService& model) {
  const auto tokenizer = model.tokenizer();
  std::vector<int32_t> ids = encode_prompt(*tokenizer, text);
  TRY(check_work());
  const ModelStatus status = model.status();
  const size_t end_tokens = tokenizer->end_id() ? 1 : 0;
  const auto context = static_cast<size_t>(std::max(status.context, 0));
  if (context > 0 && ids.size() + end_tokens > context) {
    if (!truncates) {
      return ApiError{
          400,
          fmt::format("a text of \"input\" has {} tokens, but the context of \"{}\" has "
                      "{}",
                      ids.size() + end_tokens, status.name, context),
          "input", "context_length_exceeded"};
    }
    ids.resize(context - end_tokens);
  }
  if (end_tokens > 0) ids.push_back(*tokenizer->end_id());
  if (ids.empty()) return bad_field("input", "a text of \"input\" has no tokens");
  return ids;
}

ApiResult<std::string> vector_json(const std::vector<float>& embedding,
                                   const std::optional<int>& dimensions) {
  std::span<const float> values = embedding;
  const auto wanted = static_cast<size_t>(dimensions.value_or(0));
  if (wanted > values.size()) {
    return bad_field(
        "dimensions",
        fmt::format("\"dimensions\" is {}, the model's embeddings have {}", wanted, values.size()));
  }
  if (wanted > 0) values = values.first(wanted);
  std::string text = "[";
  for (const float value : TRY(unit_vector(values))) {
    if (text.size() > 1) text += ',';
    append_json_float(text, value);
  }
  return text + ']';
}

ApiResult<std::string> body_of(const EmbedAnswer& answer, const Embeddings& embeddings) {
  if (answer.request.is_single) {
    const bool is_empty = embeddings.empty();
    return R"({"embedding":)" +
           (is_empty ? "[]" : TRY(vector_json(embeddings.front(), std::nullopt))) + "}";
  }
  std::string body = R"({"model":)";
  append_json_string(body, answer.model);
  body += R"(,"embeddings":[)";
  for (size_t i = 0; i < embeddings.size(); ++i) {
    if (i > 0) body += ',';
    body += TRY(vector_json(embeddings[i], answer.request.dimensions));
  }
  const auto took =
      std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - answer.began);
  return body + fmt::format(R"(],"total_duration":{},"load_duration":0,"prompt_eval_count":{}}})",
                            took.count(), answer.prompt_tokens);
}

void send(const EmbedAnswer& answer, const ApiResult<Embeddings>& result, const HttpReply& reply) {
  if (!result.ok()) return reply.send(error_response(result.error(), ErrorStyle::kOllama));
  auto body = body_of(answer, result.value());
  if (!body.ok()) return reply.send(error_response(body.error(), ErrorStyle::kOllama));
  reply.send({200, "application/json; charset=utf-8", std::move(body.value()),
              ignored_fields_header(answer.request.ignored)});
}

void serve_embed(ApiContext& context, ApiResult<OllamaEmbedRequest> parsed,
                 const HttpReply& reply) {
  const auto refuse = [&](const ApiError& error) {
    reply.send(error_response(error, ErrorStyle::kOllama));
  };
  if (!parsed.ok()) return refuse(parsed.error());
  auto answer = std::make_shared<EmbedAnswer>();
  answer->request = std::move(parsed.value());
  answer->began = Clock::now();
  const auto model = context.find_ready_model(ollama_model_name(context, answer->request.model));
  if (!model.ok()) return refuse(model.error());
  answer->model = model.value()->status().name;
  const auto keep_alive = answer->request.keep_alive;
  if (keep_alive && !can_keep(context, answer->model, *keep_alive)) {
    answer->request.ignored.emplace_back("keep_alive");
  }
  Prompts prompts;
  for (const std::string& text : answer->request.inputs) {
    auto prompt = embed_prompt_of(text, answer->request.truncates, *model.value());
    if (!prompt.ok()) return refuse(prompt.error());
    answer->prompt_tokens += static_cast<int64_t>(prompt.value().size());
    prompts.push_back(std::move(prompt.value()));
  }
  if (prompts.empty()) return send(*answer, Embeddings(), reply);
  // Formatting many numbers takes a while: not on the thread that reports them.
  EmbeddingJob::start(model.value(), std::move(prompts), reply,
                      [weak = context.housekeeper(), answer, reply](ApiResult<Embeddings> result) {
                        const auto housekeeper = weak.lock();
                        if (housekeeper == nullptr) return;  // the server has ended
                        housekeeper->run_soon([answer, reply, result = std::move(result)] {
                          send(*answer, result, reply);
                        });
                      });
  if (keep_alive) context.keep(answer->model, *keep_alive);
}

}  // namespace

void serve_ollama_embed(ApiContext& context, const HttpRequest& request, const HttpReply& reply) {
  serve_embed(context, parse_ollama_embed(request.body), reply);
}

void serve_ollama_embeddings(ApiContext& context, const HttpRequest& request,
                             const HttpReply& reply) {
  serve_embed(context, parse_ollama_embeddings(request.body), reply);
}

}  // namespace lockstep
