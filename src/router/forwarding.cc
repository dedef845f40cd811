#include "router/forwarding.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>

#include "net/http/http_fields.h"
#include "net/http/http_target.h"

namespace lockstep {
namespace {

constexpr uint16_t kNodePort = 8600;
constexpr const char* kViaRouter = "1.1 lockstep-router";

// Lower case.
constexpr std::string_view kOfOneConnection[] = {"connection",
                                                 "keep-alive",
                                                 "proxy-authenticate",
                                                 "proxy-authorization",
                                                 "proxy-connection",
                                                 "te",
                                                 "trailer",
                                                 "transfer-encoding",
                                                 "upgrade",
                                                 "host",
                                                 "content-length",
                                                 "expect"};

// One of these, or one listed in the Connection header: `Connection: close, x-name`.
bool stays(const HeaderList& headers, std::string_view name) {
  return std::find(std::begin(kOfOneConnection), std::end(kOfOneConnection), name) !=
             std::end(kOfOneConnection) ||
         lists_token(headers, "connection", name);
}

// Headers for the router only: pages were admitted here, and a backend would take the page for one
// of another site; control credentials are valid for one node only.
constexpr std::string_view kForRouterAlone[] = {"origin", "cookie", "x-lockstep-control"};

bool is_for_router_alone(std::string_view name) {
  return std::find(std::begin(kForRouterAlone), std::end(kForRouterAlone), name) !=
         std::end(kForRouterAlone);
}

bool is_plain(char c) {
  const bool is_word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  return is_word || std::string_view("/-._~:@!$&'()*+,;=").find(c) != std::string_view::npos;
}

}  // namespace

HeaderList forwarded_request_headers(const HttpRequest& request) {
  HeaderList kept;
  for (const auto& header : request.headers) {
    if (stays(request.headers, header.first) || is_for_router_alone(header.first)) continue;
    kept.push_back(header);
    std::replace(kept.back().second.begin(), kept.back().second.end(), '\t', ' ');
  }
  kept.emplace_back("Via", kViaRouter);  // no backend may take this for a program on its machine
  return kept;
}

HeaderList forwarded_answer_headers(const HeaderList& headers) {
  HeaderList kept;
  for (const auto& header : headers) {
    if (stays(headers, header.first)) continue;
    if (header.first.starts_with("access-control-")) continue;  // the router's own ones apply
    if (header.first != "content-type" && header.first != "date") kept.push_back(header);
  }
  return kept;
}

std::string forwarded_target(const HttpRequest& request) {
  std::string target;
  for (const char c : request.path) {
    if (is_plain(c)) {
      target += c;
    } else {
      fmt::format_to(std::back_inserter(target), "%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return request.query.empty() ? target : target + "?" + request.query;
}

Result<NetAddress> parse_backend_url(std::string_view text) {
  const PlainUrl url = TRY(split_plain_url(text,
                                           "the router speaks plain HTTP with its backends; put "
                                           "TLS between the clients and the router"));
  if (url.path.size() > 1) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{}: a backend is an address without a path, such as "
                             "http://10.0.0.2:8600",
                             text)};
  }
  return parse_net_address(url.authority, kNodePort);
}

}  // namespace lockstep
