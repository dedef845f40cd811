#include "router/forwarding.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>

#include "net/http_target.h"

namespace lockstep {
namespace {

constexpr uint16_t kNodePort = 8600;

// Names in lower case.
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

bool is_of_one_connection(std::string_view name) {
  return std::find(std::begin(kOfOneConnection), std::end(kOfOneConnection), name) !=
         std::end(kOfOneConnection);
}

bool is_plain(char c) {
  const bool is_word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  return is_word || std::string_view("/-._~:@!$&'()*+,;=").find(c) != std::string_view::npos;
}

}  // namespace

HeaderList forwarded_request_headers(const HttpRequest& request) {
  HeaderList kept;
  for (const auto& header : request.headers) {
    if (is_of_one_connection(header.first)) continue;
    kept.push_back(header);
    std::replace(kept.back().second.begin(), kept.back().second.end(), '\t', ' ');
  }
  return kept;
}

HeaderList forwarded_answer_headers(const HeaderList& headers) {
  HeaderList kept;
  for (const auto& header : headers) {
    if (is_of_one_connection(header.first)) continue;
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
  const PlainUrl url =
      TRY(split_plain_url(text,
                          "the router speaks plain HTTP with its backends; put what speaks TLS in "
                          "front of the router, not behind it"));
  if (url.path.size() > 1) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{}: a backend is an address without a path, such as "
                             "http://10.0.0.2:8600",
                             text)};
  }
  return parse_net_address(url.authority, kNodePort);
}

}  // namespace lockstep
