// The id of a request, which its answer carries in the header x-request-id (and request-id, for
// Anthropic's clients): the client's own, or a generated one.
#pragma once

#include <string>
#include <string_view>

#include "net/http/http_server.h"

namespace lockstep {

inline constexpr size_t kRequestIdBytesMax = 128;

// Ensures that the request has an id that fits into a header.
void give_request_id(HttpRequest& request);

// After give_request_id().
std::string_view request_id(const HttpRequest& request);
// The same terms plus the headers that carry the id.
HttpReply::Terms with_request_id(HttpReply::Terms terms, const HttpRequest& request);

}  // namespace lockstep
