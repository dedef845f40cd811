#include "server/token_routes.h"

#include <string>
#include <utility>

#include "base/utf8.h"
#include "server/api_context.h"
#include "server/request_fields.h"
#include "server/text_inputs.h"

namespace lockstep {
namespace {

// A token's text; where it is no whole characters, its bytes.
Json piece_json(const Tokenizer& tokenizer, int32_t id) {
  const std::string bytes = tokenizer.token_bytes(id);
  if (is_valid_utf8(bytes)) return Json(bytes);
  JsonArray list;
  for (const char byte : bytes) list.emplace_back(static_cast<uint8_t>(byte));
  return Json(std::move(list));
}

ApiResult<JsonObject> tokenize(const ApiContext& context, const HttpRequest& request) {
  const Json json = TRY(parse_body(request.body));
  RequestFields fields(json.get_object());
  const std::string name = TRY(fields.text("model")).value_or("");
  const auto content = TRY(fields.text("content"));
  if (!content) return bad_field("content", "\"content\" is required");
  const bool adds_special = TRY(fields.boolean("add_special")).value_or(false);
  const bool parses_special = TRY(fields.boolean("parse_special")).value_or(true);
  const bool has_pieces = TRY(fields.boolean("with_pieces")).value_or(false);
  const auto model = TRY(context.find_ready_model(name));
  const std::shared_ptr<const Tokenizer> tokenizer = model->tokenizer();
  JsonArray tokens;
  for (const int32_t id :
       tokenizer->encode(*content, {.add_bos = adds_special && tokenizer->bos_id().has_value(),
                                   .parse_special = parses_special})) {
    if (has_pieces) {
      tokens.push_back(JsonObject{{"id", id}, {"piece", piece_json(*tokenizer, id)}});
    } else {
      tokens.emplace_back(id);
    }
  }
  return JsonObject{{"tokens", std::move(tokens)}};
}

ApiResult<JsonObject> detokenize(const ApiContext& context, const HttpRequest& request) {
  const Json json = TRY(parse_body(request.body));
  RequestFields fields(json.get_object());
  const std::string name = TRY(fields.text("model")).value_or("");
  const Json* tokens = fields.get("tokens");
  const bool is_list = tokens != nullptr && tokens->is_array() &&
                       (tokens->get_array().empty() || tokens->get_array().front().is_int64());
  if (!is_list) return bad_field("tokens", "\"tokens\" must be an array of token ids");
  std::vector<int32_t> ids;
  if (!tokens->get_array().empty()) {
    auto inputs = TRY(parse_text_inputs(tokens, "tokens", 1));
    ids = std::move(std::get<std::vector<int32_t>>(inputs.front()));
  }
  const auto model = TRY(context.find_ready_model(name));
  TRY(check_token_ids(ids, *model->tokenizer(), "tokens"));
  auto text = model->tokenizer()->decode(ids);
  if (!text.ok()) return to_api_error(text.error());
  return JsonObject{{"content", std::move(text.value())}};
}

void answer(const HttpReply& reply, const ApiResult<JsonObject>& result) {
  if (!result.ok()) return reply.send(error_response(result.error()));
  reply.send({200, "application/json", dump_json(result.value()), {}});
}

}  // namespace

void serve_tokenize(ApiContext& context, const HttpRequest& request, const HttpReply& reply) {
  answer(reply, tokenize(context, request));
}

void serve_detokenize(ApiContext& context, const HttpRequest& request, const HttpReply& reply) {
  answer(reply, detokenize(context, request));
}

}  // namespace lockstep
