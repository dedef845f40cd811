// GET /control/proof, POST /control/page and GET /page/CODE: how the command line and a browser on
// this machine get control of a node (access/control_secret.h, access/page_sessions.h).
#pragma once

#include <string_view>

#include "net/http/http_server.h"

namespace lockstep {

class ApiContext;

inline constexpr std::string_view kPagePrefix = "/page/";

// ?nonce=64 hex digits. Answers {"proof"}: that this node has the control secret.
void serve_control_proof(ApiContext& context, const HttpRequest& request, const HttpReply& reply);
// Answers {"path": "/page/CODE", "expires_s"}: the address at which a browser can get one session.
void serve_page_code(ApiContext& context, const HttpRequest& request, const HttpReply& reply);
// Gives the browser a session and redirects it to the page.
void serve_page_entry(ApiContext& context, const HttpRequest& request, const HttpReply& reply);

}  // namespace lockstep
