#include "server/request/query.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/utf8.h"
#include "net/http/http_target.h"

namespace lockstep {
namespace {

constexpr size_t kToldNameBytesMax = 64;

std::string told_name(std::string_view name) {
  return replace_invalid_utf8(name.substr(0, kToldNameBytesMax));
}

// Form encoding: a plus sign is a space.
ApiResult<QueryParameter> parse_parameter(std::string_view text) {
  const size_t equals = std::min(text.find('='), text.size());
  std::string value(text.substr(std::min(equals + 1, text.size())));
  std::replace(value.begin(), value.end(), '+', ' ');
  const std::string_view name = text.substr(0, equals);
  auto decoded = percent_decode(value);
  if (!decoded || !is_valid_utf8(*decoded)) {
    return bad_field(told_name(name), "the query is not percent-encoded UTF-8");
  }
  return QueryParameter{name, std::move(*decoded)};
}

}  // namespace

ApiResult<std::vector<QueryParameter>> parse_query(std::string_view query) {
  std::vector<QueryParameter> parameters;
  while (!query.empty()) {
    const std::string_view text = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(text.size() + 1, query.size()));
    if (!text.empty()) parameters.push_back(TRY(parse_parameter(text)));
  }
  return parameters;
}

std::optional<std::string> text_in(const std::vector<QueryParameter>& query,
                                   std::string_view name) {
  const auto found = std::find_if(query.rbegin(), query.rend(),
                                  [&](const QueryParameter& one) { return one.name == name; });
  return found == query.rend() ? std::nullopt : std::optional(found->value);
}

ApiResult<std::optional<uint64_t>> number_in(const std::vector<QueryParameter>& query,
                                             std::string_view name, uint64_t least, uint64_t most) {
  const auto text = text_in(query, name);
  if (!text) return std::optional<uint64_t>();
  uint64_t number = 0;
  const auto end = std::from_chars(text->data(), text->data() + text->size(), number);
  const bool is_number = end.ec == std::errc() && end.ptr == text->data() + text->size();
  if (is_number && number >= least && number <= most) return std::optional(number);
  return bad_field(std::string(name),
                   fmt::format("{} is a number from {} to {}", name, least, most));
}

ApiResult<Ok> check_names(const std::vector<QueryParameter>& query,
                          std::initializer_list<std::string_view> known) {
  for (const QueryParameter& one : query) {
    if (std::find(known.begin(), known.end(), one.name) != known.end()) continue;
    const std::string name = told_name(one.name);
    return bad_field(name, fmt::format("the query has no parameter \"{}\"", name));
  }
  return Ok{};
}

}  // namespace lockstep
