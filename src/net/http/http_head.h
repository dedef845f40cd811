// The bytes of an HTTP/1.1 reply: head and chunk framing. Pure functions for HttpConnection.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep {

struct HttpReplyHead {
  int status = 200;
  std::string_view content_type;
  const std::vector<std::pair<std::string, std::string>>* headers = nullptr;
  std::optional<size_t> content_bytes;  // nullopt: chunked, or until close
  bool is_chunked = false;
  bool keeps_alive = true;
  bool is_http_1_0 = false;
};

std::string_view http_reason(int status);
// Includes the empty line. Control characters in header values become spaces, so that a value
// cannot start a new header.
std::string http_head(const HttpReplyHead& head);
void append_chunk(std::string& out, std::string_view piece);  // `piece` not empty
inline constexpr std::string_view kLastChunk = "0\r\n\r\n";

}  // namespace lockstep
