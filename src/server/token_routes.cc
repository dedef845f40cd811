#include "server/token_routes.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "base/threads/work.h"
#include "base/utf8.h"
#include "server/generation/api_context.h"
#include "server/request/request_fields.h"
#include "server/request/text_inputs.h"

namespace lockstep {
namespace {

// Texts much longer than the model can read are refused. Limits in bytes and in tokens per token of
// the context, each with a minimum.
constexpr size_t kContentBytesOfToken = 32;
constexpr size_t kContentBytesMin = 1 << 20;
constexpr size_t kTokensOfToken = 8;
constexpr size_t kTokensMin = 32 << 10;

// 400 if `size` exceeds `most`; both are counted in `unit`.
ApiResult<Ok> check_size(const ModelStatus& status, const char* field, size_t size, size_t most,
                         const char* unit) {
  if (size <= most) return Ok{};
  return ApiError{400,
                  fmt::format("\"{}\" has {} {}, and may have at most {} for a model whose context "
                              "has {} tokens: send it in parts",
                              field, size, unit, most, status.context),
                  field, "context_length_exceeded"};
}

size_t of_context(const ModelStatus& status, size_t of_token, size_t least) {
  return std::max(static_cast<size_t>(std::max(status.context, 0)) * of_token, least);
}

ApiError too_long_answer() {
  return {400,
          fmt::format("the answer would be longer than {} bytes: send the text in parts",
                      kTokenAnswerBytesMax),
          "", "answer_too_long"};
}

// A token's text, or its bytes if they are not whole characters.
void append_piece(std::string& out, std::string_view bytes) {
  if (is_valid_utf8(bytes)) return append_json_string(out, bytes);
  out += '[';
  for (size_t i = 0; i < bytes.size(); ++i) {
    fmt::format_to(std::back_inserter(out), "{}{}", i > 0 ? "," : "",
                   static_cast<uint8_t>(bytes[i]));
  }
  out += ']';
}

// Written as text directly: a Json value per token would take some twenty times the memory.
ApiResult<std::string> tokens_body(const std::vector<int32_t>& ids, const Tokenizer& tokenizer,
                                   bool has_pieces) {
  std::string body = R"({"tokens":[)";
  for (size_t i = 0; i < ids.size(); ++i) {
    if (const Status work = Work::check(); !work.ok()) return to_api_error(work.error());
    if (i > 0) body += ',';
    if (has_pieces) {
      fmt::format_to(std::back_inserter(body), R"({{"id":{},"piece":)", ids[i]);
      append_piece(body, tokenizer.token_bytes(ids[i]));
      body += '}';
    } else {
      fmt::format_to(std::back_inserter(body), "{}", ids[i]);
    }
    if (body.size() > kTokenAnswerBytesMax) return too_long_answer();
  }
  body += "]}";
  return body;
}

ApiResult<std::string> tokenize(const ApiContext& context, const HttpRequest& request) {
  std::string name;
  std::string content;
  bool adds_special = false;
  bool parses_special = true;
  bool has_pieces = false;
  {
    const Json json = TRY(parse_body(request.body));
    RequestFields fields(json.get_object());
    name = TRY(fields.text("model")).value_or("");
    auto text = TRY(fields.text("content"));
    if (!text) return bad_field("content", "\"content\" is required");
    content = std::move(*text);
    adds_special = TRY(fields.boolean("add_special")).value_or(adds_special);
    parses_special = TRY(fields.boolean("parse_special")).value_or(parses_special);
    has_pieces = TRY(fields.boolean("with_pieces")).value_or(has_pieces);
  }
  const auto model = TRY(context.find_ready_model(name));
  const ModelStatus status = model->status();
  TRY(check_size(status, "content", content.size(),
                 of_context(status, kContentBytesOfToken, kContentBytesMin), "bytes"));
  const std::shared_ptr<const Tokenizer> tokenizer = model->tokenizer();
  const auto ids =
      tokenizer->encode(content, {.add_bos = adds_special && tokenizer->bos_id().has_value(),
                                  .parse_special = parses_special});
  TRY(check_work());
  return tokens_body(ids, *tokenizer, has_pieces);
}

ApiResult<std::string> detokenize(const ApiContext& context, const HttpRequest& request) {
  std::string name;
  std::vector<int32_t> ids;
  {
    const Json json = TRY(parse_body(request.body));
    RequestFields fields(json.get_object());
    name = TRY(fields.text("model")).value_or("");
    const Json* tokens = fields.get("tokens");
    const bool is_list = tokens != nullptr && tokens->is_array() &&
                         (tokens->get_array().empty() || tokens->get_array().front().is_int64());
    if (!is_list) return bad_field("tokens", "\"tokens\" must be an array of token ids");
    if (!tokens->get_array().empty()) {
      auto inputs = TRY(parse_text_inputs(tokens, "tokens", 1));
      ids = std::move(std::get<std::vector<int32_t>>(inputs.front()));
    }
  }
  const auto model = TRY(context.find_ready_model(name));
  const ModelStatus status = model->status();
  TRY(check_size(status, "tokens", ids.size(), of_context(status, kTokensOfToken, kTokensMin),
                 "tokens"));
  const std::shared_ptr<const Tokenizer> tokenizer = model->tokenizer();
  TRY(check_token_ids(ids, *tokenizer, "tokens"));
  size_t bytes = 0;
  for (const int32_t id : ids) {
    if (const Status work = Work::check(); !work.ok()) return to_api_error(work.error());
    bytes += tokenizer->token_bytes(id).size();
    if (bytes > kTokenAnswerBytesMax) return too_long_answer();
  }
  const auto text = tokenizer->decode(ids);
  if (!text.ok()) return to_api_error(text.error());
  std::string body = R"({"content":)";
  append_json_string(body, text.value());
  body += '}';
  return body;
}

void answer_tokens(const HttpReply& reply, ApiResult<std::string> result) {
  if (!result.ok()) return reply.send(error_response(result.error()));
  reply.send({200, "application/json", std::move(result.value()), {}});
}

}  // namespace

void serve_tokenize(ApiContext& context, const HttpRequest& request, const HttpReply& reply) {
  answer_tokens(reply, tokenize(context, request));
}

void serve_detokenize(ApiContext& context, const HttpRequest& request, const HttpReply& reply) {
  answer_tokens(reply, detokenize(context, request));
}

}  // namespace lockstep
