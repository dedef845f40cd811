#include "server/openai/stream_routes.h"

#include <charconv>
#include <string>
#include <utility>

#include "json/json.h"
#include "server/request/errors.h"

namespace lockstep {
namespace {

constexpr std::string_view kKeep = "keep";
constexpr std::string_view kFromField = "from=";

ApiError bad_header(std::string message) {
  return {400, std::move(message), "", "invalid_stream_header"};
}

std::string_view stream_id(const HttpRequest& request) {
  std::string_view id = request.path;
  id.remove_prefix(id.find(kStreamPrefix) + kStreamPrefix.size());
  return id;
}

// "from=12"; without a query all events.
ApiResult<uint64_t> first_event(std::string_view query) {
  if (query.empty()) return uint64_t{0};
  uint64_t from = 0;
  const bool has_name = query.starts_with(kFromField);
  if (has_name) query.remove_prefix(kFromField.size());
  const auto [end, error] = std::from_chars(query.data(), query.data() + query.size(), from);
  if (has_name && error == std::errc() && end == query.data() + query.size()) return from;
  return bad_field("from",
                   "the query of a stream is from=N, the number of the first event to send");
}

ApiResult<Ok> attach(ApiContext& context, const HttpRequest& request, const HttpReply& reply) {
  const auto stream =
      TRY(context.streams().find(stream_id(request), context.access().owner_of(request)));
  const uint64_t from = TRY(first_event(request.query));
  return stream->attach(reply, from);
}

}  // namespace

ApiResult<AnswerTarget> answer_target(ApiContext& context, const HttpRequest& request,
                                      const ModelService& model, bool is_streamed,
                                      const HttpReply& reply) {
  const std::string_view wish = request.header(kStreamHeader);
  if (wish.empty()) return AnswerTarget{reply, nullptr};
  if (wish != kKeep) {
    return bad_header("the header X-Lockstep-Stream of a request can only be \"keep\"");
  }
  if (!is_streamed) {
    return bad_header(
        "only a stream can be kept: the header X-Lockstep-Stream needs "
        "\"stream\": true");
  }
  auto kept =
      TRY(context.streams().keep(model.status().name, context.access().owner_of(request), reply));
  return AnswerTarget{reply, std::move(kept)};
}

ApiResult<Ok> refuse_stream_header(const HttpRequest& request) {
  if (request.header(kStreamHeader).empty()) return Ok{};
  return bad_header(
      "the header X-Lockstep-Stream works with /v1/chat/completions and "
      "/v1/completions only");
}

void serve_streams(ApiContext& context, const HttpRequest& request, const HttpReply& reply) {
  JsonArray streams;
  for (const StreamFacts& one : context.streams().list(context.access().owner_of(request))) {
    streams.push_back(JsonObject{
        {"id", one.id}, {"model", one.model}, {"events", one.events}, {"done", one.is_done}});
  }
  reply.send({200, "application/json", dump_json(JsonObject{{"streams", std::move(streams)}}), {}});
}

void serve_stream(ApiContext& context, const HttpRequest& request, const HttpReply& reply) {
  const auto attached = attach(context, request, reply);
  if (!attached.ok()) reply.send(error_response(attached.error()));
}

void serve_stream_end(ApiContext& context, const HttpRequest& request, const HttpReply& reply) {
  const std::string_view id = stream_id(request);
  const auto removed = context.streams().remove(id, context.access().owner_of(request));
  if (!removed.ok()) return reply.send(error_response(removed.error()));
  reply.send({200, "application/json", dump_json(JsonObject{{"id", id}, {"deleted", true}}), {}});
}

}  // namespace lockstep
