// The request target of HTTP/1.1 as a path and a query: percent-decoding, normalisation, and the
// refusal of what no honest client sends. Pure functions over untrusted bytes; used by the request
// parser and by routes.
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
  std::string query;  // as sent, without '?'
};

// Origin form ("/a?b") or absolute form ("http://host/a?b"); kInvalidArgument with a sentence
// otherwise: a bad percent escape, NUL or a path that is not UTF-8.
Result<HttpTarget> parse_target(std::string_view target);

// The address of a server that speaks plain HTTP, as a user writes it: "HOST:PORT", with "http://"
// before it or without, and what follows from the first slash on.
struct PlainUrl {
  std::string_view authority;
  std::string_view path;  // empty, or "/" and more
};

// Views into `url`. kUnsupported for https://, with `advice` behind the address.
Result<PlainUrl> split_plain_url(std::string_view url, std::string_view advice);

// nullopt if an escape is cut off or not hexadecimal.
std::optional<std::string> percent_decode(std::string_view text);

}  // namespace lockstep
