// Which page sent a request, and with which cookies: browsers say so in Origin (RFC 6454),
// Sec-Fetch-Site (W3C, Fetch Metadata Request Headers) and Cookie (RFC 6265, section 5.4), which
// pages cannot change. Pure functions, any thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "net/http/http_server.h"

namespace lockstep {

// Whether a page of another origin caused the request. The origin of this server's own page is the
// name under which it was asked.
bool is_of_another_page(const HttpRequest& request);

// Whether a cookie may stand for the sender. Browsers send cookies whoever caused the request, also
// for pages at other ports of this host, which count as the same site. So a request that a page of
// another origin caused may not use them, and one that could change something must prove that it
// comes from the own page.
bool may_use_cookies(const HttpRequest& request);

// A request with more cookies of one name is an attack on the time that comparing them takes.
inline constexpr size_t kSameCookiesMax = 8;

// The values of the first cookies of this name in a Cookie header: pages at other ports of this
// host may have set more of the same name.
std::vector<std::string_view> cookie_values(std::string_view header, std::string_view name);
// The value of Set-Cookie for a cookie that no script can read and no other site causes to be sent;
// `life` 0: the browser forgets it.
std::string session_cookie(std::string_view name, std::string_view value,
                           std::chrono::seconds life);

}  // namespace lockstep
