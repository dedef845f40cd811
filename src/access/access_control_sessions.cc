// The part of AccessControl that lets the page's cookies stand for a key.
#include <algorithm>
#include <utility>

#include "access/access_control.h"
#include "access/local_caller.h"
#include "access/own_page.h"
#include "access/sent_key.h"

namespace lockstep {
namespace {

ApiError not_the_own_page(std::string message) {
  return {403, std::move(message), "", "origin_not_allowed"};
}

// A program that is no browser sends neither header.
bool is_sent_by_another_page(const HttpRequest& request) {
  const std::string_view site = request.header("sec-fetch-site");
  return is_of_another_page(request) || (!site.empty() && site != "same-origin");
}

}  // namespace

const ApiKey* AccessControl::key_of(const HttpRequest& request, const Keys& keys) const {
  const std::string_view text = key_in(request);
  if (!text.empty()) return find_key(keys, text);
  if (keys.empty() || !may_use_cookies(request)) return nullptr;
  const auto hash = key_sessions_.key_of(request.header("cookie"), KeySessions::Clock::now());
  if (!hash) return nullptr;
  const auto key = std::find_if(keys.begin(), keys.end(),
                                [&](const ApiKey& candidate) { return candidate.hash == *hash; });
  return key == keys.end() ? nullptr : &*key;  // removed since
}

ApiResult<Ok> AccessControl::check_this_machine(const HttpRequest& request) const {
  TRY(check_takes_control());
  return check_local_caller(request);
}

ApiResult<AccessControl::SessionFacts> AccessControl::session_facts(
    const HttpRequest& request) const {
  if (is_foreign_page(request)) {
    return not_the_own_page("a page of another site asks for the session of this node's page");
  }
  const std::shared_ptr<const Keys> keys = keys_.keys();
  if (keys->empty()) TRY(check_without_keys(request));
  return SessionFacts{.has_control = check_control(request).ok(),
                      .has_key = key_of(request, *keys) != nullptr,
                      .has_keys = !keys->empty()};
}

ApiResult<std::string> AccessControl::open_key_session(const HttpRequest& request) {
  if (is_sent_by_another_page(request)) {
    return not_the_own_page("only the page of this node may open a session for a key");
  }
  const std::shared_ptr<const Keys> keys = keys_.keys();
  if (keys->empty()) {
    TRY(check_without_keys(request));
    return ApiError{409, "this node has no API keys, so its page needs no session", "",
                    "no_api_keys"};
  }
  const std::string_view text = key_in(request);
  const ApiKey* const key = find_key(*keys, text);
  if (key == nullptr) return no_key(!text.empty());
  const bool is_encrypted = request.header("origin").starts_with("https://");
  auto cookie = key_sessions_.open(key->hash, is_encrypted, KeySessions::Clock::now());
  if (!cookie.ok()) return ApiError{500, cookie.error().message, "", "internal_error"};
  return std::move(cookie.value());
}

ApiResult<AccessControl::EndedSession> AccessControl::close_key_session(
    const HttpRequest& request) {
  if (!may_use_cookies(request)) {
    return not_the_own_page("only the page of this node may end its session");
  }
  return EndedSession{.has_ended = key_sessions_.close(request.header("cookie")),
                      .set_cookie = key_sessions_.forgetting()};
}

}  // namespace lockstep
