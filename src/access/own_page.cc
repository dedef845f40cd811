#include "access/own_page.h"

#include <fmt/core.h>

#include <algorithm>

namespace lockstep {
namespace {

std::string_view without_spaces(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

}  // namespace

bool is_of_another_page(const HttpRequest& request) {
  const std::string_view origin = request.header("origin");
  const std::string_view host = request.header("host");
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (origin.starts_with(scheme) && origin.substr(scheme.size()) == host) return false;
  }
  return !origin.empty();
}

bool may_use_cookies(const HttpRequest& request) {
  const bool only_reads = request.method == "GET";
  const std::string_view origin = request.header("origin");
  const std::string_view site = request.header("sec-fetch-site");
  if (is_of_another_page(request)) return false;
  // "none": the user typed the address.
  const bool is_own_site = site == "same-origin" || (site == "none" && only_reads);
  if (!site.empty() && !is_own_site) return false;
  return only_reads || !origin.empty() || !site.empty();
}

std::vector<std::string_view> cookie_values(std::string_view header, std::string_view name) {
  std::vector<std::string_view> values;
  while (!header.empty() && values.size() < kSameCookiesMax) {
    const std::string_view pair = header.substr(0, header.find(';'));
    header.remove_prefix(std::min(header.size(), pair.size() + 1));
    const size_t equals = pair.find('=');
    if (equals == std::string_view::npos) continue;
    if (without_spaces(pair.substr(0, equals)) != name) continue;
    values.push_back(without_spaces(pair.substr(equals + 1)));
  }
  return values;
}

std::string session_cookie(std::string_view name, std::string_view value,
                           std::chrono::seconds life) {
  return fmt::format("{}={}; Path=/; Max-Age={}; HttpOnly; SameSite=Strict", name, value,
                     life.count());
}

}  // namespace lockstep
