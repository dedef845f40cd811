// The id of a request, which its answer names in the header x-request-id (and request-id, as
// Anthropic's clients know it): the client's own, or one that is made.
#pragma once

#include <string>
#include <string_view>

#include "net/http_server.h"

namespace lockstep {

inline constexpr size_t kRequestIdBytesMax = 128;

// Sees to it that the request has an id that fits into a header.
void give_request_id(HttpRequest& request);

// Of a request that was given one.
std::string_view request_id(const HttpRequest& request);
// The same terms, and the headers that name it.
HttpReply::Terms with_request_id(HttpReply::Terms terms, const HttpRequest& request);

}  // namespace lockstep
