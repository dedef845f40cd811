#include "net/http/http_head.h"

#include <fmt/core.h>
#include <time.h>

#include <iterator>

#include "base/check.h"

namespace lockstep {
namespace {

void append_header(std::string& out, std::string_view name, std::string_view value) {
  out.append(name).append(": ");
  for (char c : value) out.push_back(static_cast<unsigned char>(c) < 0x20 || c == 0x7F ? ' ' : c);
  out.append("\r\n");
}

// IMF-fixdate of RFC 9110 5.6.7; strftime would use the process's locale.
std::string http_date() {
  static constexpr std::string_view kDays = "SunMonTueWedThuFriSat";
  static constexpr std::string_view kMonths = "JanFebMarAprMayJunJulAugSepOctNovDec";
  const time_t now = ::time(nullptr);
  tm parts{};
  ::gmtime_r(&now, &parts);
  return fmt::format("{}, {:02} {} {} {:02}:{:02}:{:02} GMT", kDays.substr(3 * parts.tm_wday, 3),
                     parts.tm_mday, kMonths.substr(3 * parts.tm_mon, 3), parts.tm_year + 1900,
                     parts.tm_hour, parts.tm_min, parts.tm_sec);
}

}  // namespace

std::string_view http_reason(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    case 204:
      return "No Content";
    case 301:
      return "Moved Permanently";
    case 302:
      return "Found";
    case 304:
      return "Not Modified";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 413:
      return "Content Too Large";
    case 414:
      return "URI Too Long";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 422:
      return "Unprocessable Content";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 529:  // in Anthropic's API
      return "Overloaded";
    default:
      return "Status";
  }
}

std::string http_head(const HttpReplyHead& head) {
  LOCKSTEP_CHECK(head.status >= 200 && head.status <= 599);
  std::string out = fmt::format("HTTP/1.1 {} {}\r\n", head.status, http_reason(head.status));
  append_header(out, "Date", http_date());
  if (!head.content_type.empty()) append_header(out, "Content-Type", head.content_type);
  if (head.content_bytes) append_header(out, "Content-Length", std::to_string(*head.content_bytes));
  if (head.is_chunked) append_header(out, "Transfer-Encoding", "chunked");
  if (!head.keeps_alive) {
    append_header(out, "Connection", "close");
  } else if (head.is_http_1_0) {
    append_header(out, "Connection", "keep-alive");
  }
  if (head.headers != nullptr) {
    for (const auto& [name, value] : *head.headers) append_header(out, name, value);
  }
  return out.append("\r\n");
}

void append_chunk(std::string& out, std::string_view piece) {
  LOCKSTEP_CHECK(!piece.empty());
  fmt::format_to(std::back_inserter(out), "{:x}\r\n", piece.size());
  out.append(piece).append("\r\n");
}

}  // namespace lockstep
