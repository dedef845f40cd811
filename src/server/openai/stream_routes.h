// Answers that outlive their connection: the header `X-Lockstep-Stream: keep` of a streamed answer
// of OpenAI's text APIs, and the routes with which its caller reads on, lists and ends such
// answers. GET /v1/streams, GET and DELETE /v1/streams/ID.
#pragma once

#include <string_view>

#include "net/http/http_server.h"
#include "server/generation/api_context.h"

namespace lockstep {

inline constexpr std::string_view kStreamsPath = "/streams";
inline constexpr std::string_view kStreamPrefix = "/streams/";

// Where the answer to `request` goes: into a kept stream if the header asks for that. 400 for
// another value, or an answer that is not streamed; 429 beyond the limits.
ApiResult<AnswerTarget> answer_target(ApiContext& context, const HttpRequest& request,
                                      const ModelService& model, bool is_streamed,
                                      const HttpReply& reply);
// 400 if the header asks for something that the route of `request` does not do.
ApiResult<Ok> refuse_stream_header(const HttpRequest& request);

void serve_streams(ApiContext& context, const HttpRequest& request, const HttpReply& reply);
void serve_stream(ApiContext& context, const HttpRequest& request, const HttpReply& reply);
void serve_stream_end(ApiContext& context, const HttpRequest& request, const HttpReply& reply);

}  // namespace lockstep
