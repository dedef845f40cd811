// Parses the request target of HTTP/1.1 into a path and a query: percent-decoding, normalisation,
// and refusal of malformed targets. Pure functions over untrusted bytes; used by the request parser
// and by routes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace lockstep {

inline constexpr size_t kTargetBytesMax = 8 << 10;

struct HttpTarget {
  std::string
      path;  // decoded, starts with '/', no "." or ".." segments, no trailing slash except in "/"
  std::string query;      // as sent, without '?'
  std::string authority;  // in absolute form, as sent; else empty
};

// Origin form ("/a?b") or absolute form ("http://host/a?b"); kInvalidArgument with a sentence
// otherwise: "*", "host:port", no host, a bad percent escape, NUL or a path that is not UTF-8.
Result<HttpTarget> parse_target(std::string_view target);

// The address of a plain HTTP server, as a user writes it: "HOST:PORT", optionally with "http://",
// and the rest from the first slash on.
struct PlainUrl {
  std::string_view authority;
  std::string_view path;  // empty, or "/" and more
};

// Views into `url`. kUnsupported for https://, with `advice` after the address.
Result<PlainUrl> split_plain_url(std::string_view url, std::string_view advice);

// nullopt if an escape is incomplete or not hexadecimal.
std::optional<std::string> percent_decode(std::string_view text);

}  // namespace lockstep
