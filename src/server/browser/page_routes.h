// GET / and GET /assets/NAME: the web page and its files, for everybody, since they contain nothing
// of this node. Browsers keep the page only as long as its ETag is the same, and assets for a year,
// because their names change with their contents. On the event loop's thread.
#pragma once

#include <string_view>

#include "net/http/http_server.h"
#include "server/page/page_file.h"

namespace lockstep {

class ApiContext;

inline constexpr std::string_view kAssetsPrefix = "/assets/";

// Browsers accept text/html. Programs that accept only something else are checking, like Ollama's
// clients, whether a server runs, and get "Ollama is running".
void serve_page(ApiContext& context, const HttpRequest& request, const HttpReply& reply);
// 404 for a file that this page does not have.
void serve_asset(ApiContext& context, const HttpRequest& request, const HttpReply& reply);

// Whether Accept-Encoding (RFC 9110, section 12.5.3) allows gzip.
bool accepts_gzip(std::string_view accept_encoding);
// Whether If-None-Match (RFC 9110, section 13.1.2) names this entity tag, in its quotes.
bool names_tag(std::string_view if_none_match, std::string_view tag);

}  // namespace lockstep
