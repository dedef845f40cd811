#include "router/forwarding.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>

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
  constexpr std::string_view kScheme = "http://";
  std::string_view rest = text;
  if (rest.starts_with("https://")) {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("{}: the router speaks plain HTTP with its backends; put what speaks "
                             "TLS in front of the router, not behind it",
                             text)};
  }
  if (rest.starts_with(kScheme)) rest.remove_prefix(kScheme.size());
  if (rest.ends_with('/')) rest.remove_suffix(1);
  if (rest.find('/') != std::string_view::npos) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{}: a backend is an address without a path, such as "
                             "http://10.0.0.2:8600",
                             text)};
  }
  return parse_net_address(rest, kNodePort);
}

}  // namespace lockstep
