#include "server/openai/openai_embeddings.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "server/chat/chat_prompt.h"
#include "server/generation/api_context.h"
#include "server/generation/embedding_job.h"
#include "server/request/request_fields.h"
#include "tokenizer/text/base64.h"

namespace lockstep {
namespace {

// A text gets the special tokens of the model's post-processor; ids are used as they are.
ApiResult<std::vector<int32_t>> embedding_prompt_of(const TextInput& input,
                                                    const Tokenizer& tokenizer,
                                                    const ModelStatus& status) {
  std::vector<int32_t> ids;
  if (const auto* text = std::get_if<std::string>(&input)) {
    if (text->empty()) return bad_field("input", "\"input\" must not contain an empty string");
    ids = encode_prompt(tokenizer, *text);
    TRY(check_work());
    if (tokenizer.end_id()) ids.push_back(*tokenizer.end_id());
  } else {
    ids = std::get<std::vector<int32_t>>(input);
    TRY(check_token_ids(ids, tokenizer, "input"));
  }
  if (ids.empty()) return bad_field("input", "a text of \"input\" has no tokens");
  if (status.context > 0 && ids.size() > static_cast<size_t>(status.context)) {
    return ApiError{
        400,
        fmt::format("a text of \"input\" has {} tokens, but the context of \"{}\" has {}",
                    ids.size(), status.name, status.context),
        "input", "context_length_exceeded"};
  }
  return ids;
}

ApiResult<std::vector<std::vector<int32_t>>> prompts_of(const EmbeddingRequest& request,
                                                        const ModelService& model) {
  const ModelStatus status = model.status();
  const std::shared_ptr<const Tokenizer> tokenizer = model.tokenizer();
  std::vector<std::vector<int32_t>> prompts;
  for (const TextInput& input : request.inputs) {
    prompts.push_back(TRY(embedding_prompt_of(input, *tokenizer, status)));
  }
  return prompts;
}

void append_embedding(std::string& body, const std::vector<float>& values, bool is_base64) {
  if (is_base64) {  // the bytes of float32 in the order of the machine, which is little-endian
    const auto* bytes = reinterpret_cast<const char*>(values.data());
    return append_json_string(body, encode_base64({bytes, values.size() * sizeof(float)}));
  }
  body += '[';
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0) body += ',';
    append_json_float(body, values[i]);
  }
  body += ']';
}

ApiResult<std::string> answer_body(const EmbeddingRequest& request, const Embeddings& embeddings,
                                   const std::string& model, int64_t prompt_tokens) {
  std::string body = R"({"object":"list","data":[)";
  for (size_t i = 0; i < embeddings.size(); ++i) {
    std::span<const float> values = embeddings[i];
    const auto wanted = static_cast<size_t>(request.dimensions.value_or(0));
    if (wanted > values.size()) {
      return bad_field("dimensions",
                       fmt::format("\"dimensions\" is {}, the model's embeddings have {}", wanted,
                                   values.size()));
    }
    if (wanted > 0) values = values.first(wanted);
    body += fmt::format(R"({}{{"object":"embedding","index":{},"embedding":)", i > 0 ? "," : "", i);
    append_embedding(body, TRY(unit_vector(values)), request.is_base64);
    body += '}';
  }
  body += R"(],"model":)";
  append_json_string(body, model);
  return body +
         fmt::format(R"(,"usage":{{"prompt_tokens":{0},"total_tokens":{0}}}}})", prompt_tokens);
}

// Sends the answer on the housekeeper's thread and not on the one that reports the last text:
// formatting many numbers takes a while.
EmbeddingJob::Done answer_soon(ApiContext& context, EmbeddingRequest request, std::string model,
                               int64_t prompt_tokens, const HttpReply& reply) {
  const auto shared = std::make_shared<const EmbeddingRequest>(std::move(request));
  const auto answer = [shared, model, prompt_tokens, reply](const ApiResult<Embeddings>& result) {
    if (!result.ok()) return reply.send(error_response(result.error()));
    auto body = answer_body(*shared, result.value(), model, prompt_tokens);
    if (!body.ok()) return reply.send(error_response(body.error()));
    reply.send(
        {200, "application/json", std::move(body.value()), ignored_fields_header(shared->ignored)});
  };
  return [weak = context.housekeeper(), answer](ApiResult<Embeddings> result) {
    const auto housekeeper = weak.lock();
    if (housekeeper == nullptr) return;  // the server has ended
    housekeeper->run_soon([answer, result = std::move(result)] { answer(result); });
  };
}

}  // namespace

ApiResult<EmbeddingRequest> parse_embedding_request(std::string_view body) {
  const Json json = TRY(parse_body(body));
  RequestFields fields(json.get_object());
  EmbeddingRequest request;
  request.model = TRY(fields.text("model")).value_or("");
  request.inputs = TRY(parse_text_inputs(fields.get("input"), "input", kEmbeddingInputsMax));
  const std::string format = TRY(fields.text("encoding_format")).value_or("float");
  if (format != "float" && format != "base64") {
    return bad_field("encoding_format", "\"encoding_format\" must be \"float\" or \"base64\"");
  }
  request.is_base64 = format == "base64";
  const auto dimensions = TRY(fields.integer("dimensions", 1, kEmbeddingDimensionsMax));
  if (dimensions) request.dimensions = static_cast<int>(*dimensions);
  TRY(fields.text("user"));
  request.ignored = fields.ignored();
  return request;
}

ApiResult<std::vector<float>> unit_vector(std::span<const float> values) {
  double squares = 0;
  for (const float value : values) squares += double{value} * double{value};
  if (!std::isfinite(squares)) {
    return ApiError{500, "the model's embedding has values that are NaN or infinite", "",
                    "internal_error"};
  }
  const double factor = squares > 0 ? 1 / std::sqrt(squares) : 0;
  std::vector<float> unit;
  unit.reserve(values.size());
  for (const float value : values) unit.push_back(static_cast<float>(double{value} * factor));
  return unit;
}

void serve_embeddings(ApiContext& context, const HttpRequest& request, const HttpReply& reply) {
  auto parsed = parse_embedding_request(request.body);
  if (!parsed.ok()) return reply.send(error_response(parsed.error()));
  const auto model = context.find_ready_model(parsed.value().model);
  if (!model.ok()) return reply.send(error_response(model.error()));
  auto prompts = prompts_of(parsed.value(), *model.value());
  if (!prompts.ok()) return reply.send(error_response(prompts.error()));
  int64_t tokens = 0;
  for (const auto& prompt : prompts.value()) tokens += static_cast<int64_t>(prompt.size());
  EmbeddingJob::start(
      model.value(), std::move(prompts.value()), reply,
      answer_soon(context, std::move(parsed.value()), model.value()->status().name, tokens, reply));
}

}  // namespace lockstep
