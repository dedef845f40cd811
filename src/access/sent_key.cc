#include "access/sent_key.h"

#include <algorithm>

namespace lockstep {
namespace {

bool is_same_letters(std::string_view a, std::string_view lower) {
  return std::equal(a.begin(), a.end(), lower.begin(), lower.end(), [](char x, char y) {
    return (x >= 'A' && x <= 'Z' ? static_cast<char>(x - 'A' + 'a') : x) == y;
  });
}

}  // namespace

std::string_view key_in(const HttpRequest& request) {
  constexpr std::string_view kScheme = "bearer ";
  std::string_view text = request.header("authorization");
  if (text.size() > kScheme.size() && is_same_letters(text.substr(0, kScheme.size()), kScheme)) {
    text.remove_prefix(kScheme.size());
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    return text;
  }
  return request.header("x-api-key");
}

ApiError no_key(bool has_one) {
  return {401,
          has_one
              ? "this API key is unknown here: create one with `lockstep key add NAME` on the node"
              : "an API key is needed, as `Authorization: Bearer KEY` or `x-api-key: KEY`",
          "", "invalid_api_key"};
}

}  // namespace lockstep
