#include "net/http/http_target.h"

#include <algorithm>
#include <vector>

#include "base/hex.h"
#include "base/utf8.h"

namespace lockstep {
namespace {

Error bad_target(std::string_view why) {
  return {ErrorCode::kInvalidArgument, "the request target is invalid: " + std::string(why)};
}

// RFC 3986 5.2.4 on a decoded path; empty segments are dropped, which also drops trailing slashes.
std::string normalise(std::string_view path) {
  std::vector<std::string_view> kept;
  while (!path.empty()) {
    path.remove_prefix(1);  // the slash
    const std::string_view segment = path.substr(0, path.find('/'));
    path.remove_prefix(segment.size());
    if (segment == "..") {
      if (!kept.empty()) kept.pop_back();
    } else if (!segment.empty() && segment != ".") {
      kept.push_back(segment);
    }
  }
  std::string result;
  for (std::string_view segment : kept) result.append("/").append(segment);
  return result.empty() ? "/" : result;
}

// Removes "http://host" from the front of an absolute form, and returns the host; nullopt for other
// forms.
std::optional<std::string_view> take_authority(std::string_view& target) {
  for (std::string_view scheme : {"http://", "https://"}) {
    if (!target.starts_with(scheme)) continue;
    target.remove_prefix(scheme.size());
    const size_t path = std::min(target.find_first_of("/?"), target.size());
    const std::string_view authority = target.substr(0, path);
    target.remove_prefix(path);
    return authority;
  }
  return std::nullopt;
}

}  // namespace

Result<PlainUrl> split_plain_url(std::string_view url, std::string_view advice) {
  constexpr std::string_view kScheme = "http://";
  if (url.starts_with("https://")) {
    return Error{ErrorCode::kUnsupported, std::string(url) + ": " + std::string(advice)};
  }
  if (url.starts_with(kScheme)) url.remove_prefix(kScheme.size());
  const size_t slash = std::min(url.find('/'), url.size());
  return PlainUrl{url.substr(0, slash), url.substr(slash)};
}

std::optional<std::string> percent_decode(std::string_view text) {
  std::string decoded;
  decoded.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded.push_back(text[i]);
      continue;
    }
    if (i + 2 >= text.size()) return std::nullopt;
    const int high = hex_digit(text[i + 1]);
    const int low = hex_digit(text[i + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    decoded.push_back(static_cast<char>(high * 16 + low));
    i += 2;
  }
  return decoded;
}

Result<HttpTarget> parse_target(std::string_view target) {
  const std::optional<std::string_view> authority = take_authority(target);
  if (authority && authority->empty()) return bad_target("it names no host");
  const size_t question = target.find('?');
  const std::string_view path = target.substr(0, question);
  if (path.empty() ? !authority : path.front() != '/') {
    return bad_target("it does not start with a slash");
  }
  std::optional<std::string> decoded = percent_decode(path);
  if (!decoded) return bad_target("a percent escape is not two hexadecimal digits");
  if (decoded->find('\0') != std::string::npos) return bad_target("it contains a NUL");
  if (!is_valid_utf8(*decoded)) return bad_target("the path is not UTF-8");
  HttpTarget result{normalise(*decoded), "", std::string(authority.value_or(""))};
  if (question != std::string_view::npos) result.query = target.substr(question + 1);
  return result;
}

}  // namespace lockstep
