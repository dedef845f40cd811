#include "access/access_control.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "access/host_names.h"
#include "access/local_caller.h"
#include "access/own_page.h"
#include "access/sent_key.h"
#include "net/caller_network.h"

namespace lockstep {
namespace {

constexpr std::string_view kAnyOrigin = "*";
constexpr const char* kPreflightSeconds = "600";

// Not for the node itself: any program, or a page that was allowed.
bool is_for_programs(RouteAccess access) {
  return access == RouteAccess::kLook || access == RouteAccess::kUse ||
         access == RouteAccess::kResume;
}

ApiError internal_error(const Error& error) {
  return {500, error.message, "", "internal_error"};
}

ApiError no_control(std::string message) {
  return {403, std::move(message), "", "control_needed"};
}

// Looks up the machine's own names only if they matter.
std::vector<std::string> names_for(const AccessOptions& options) {
  std::vector<std::string> names = options.is_open ? own_host_names() : std::vector<std::string>();
  names.insert(names.end(), options.host_names.begin(), options.host_names.end());
  return names;
}

}  // namespace

Result<std::unique_ptr<AccessControl>> AccessControl::open(AccessOptions options) {
  KeyRing keys = TRY(KeyRing::open(options.keys));
  for (std::string& name : options.host_names) name = TRY(parse_host_name(name));
  std::optional<ControlSecret> secret;
  if (!options.control_folder.empty()) secret = TRY(ControlSecret::open(options.control_folder));
  ControlNonces nonces = TRY(ControlNonces::create());
  PageSessions sessions = TRY(PageSessions::create());
  return std::unique_ptr<AccessControl>(new AccessControl(std::move(options), std::move(keys),
                                                          std::move(secret), std::move(nonces),
                                                          std::move(sessions)));
}

AccessControl::AccessControl(AccessOptions options, KeyRing keys,
                             std::optional<ControlSecret> secret, ControlNonces nonces,
                             PageSessions sessions)
    : options_(std::move(options)),
      host_names_(names_for(options_)),
      keys_(std::move(keys)),
      secret_(std::move(secret)),
      nonces_(std::move(nonces)),
      sessions_(std::move(sessions)),
      limiter_(options_.limits) {}

Status AccessControl::check_host(const std::string& host) const {
  const bool is_loopback = host == "::1" || is_loopback_authority(host);
  if (is_loopback || options_.is_open || !keys_.keys()->empty()) return Ok{};
  return Error{
      ErrorCode::kInvalidArgument,
      fmt::format(
          "--host {} lets other machines in, and there is no API key: make one with `lockstep key "
          "add NAME`, or give --open to answer everyone who can reach the port",
          host)};
}

ApiResult<HttpReply::Terms> AccessControl::admit(HttpRequest& request, RouteAccess access) {
  request.is_proved = proves_secret(request);
  const std::shared_ptr<const Keys> keys = keys_.keys();
  HttpReply::Terms terms;
  terms.headers = headers(request);
  // A page with a key was given it; any other may be anybody's, in a browser that can reach this
  // node.
  if (is_foreign_page(request) && is_for_programs(access) && key_of(request, *keys) == nullptr) {
    return ApiError{
        403, "a page of another site sent this request; --allow-origin ORIGIN would allow it", "",
        "origin_not_allowed"};
  }
  terms.caller = TRY(caller(request, access, *keys));
  if (access == RouteAccess::kUse) {
    terms.permit = TRY(limiter_.admit(terms.caller, RequestLimiter::Clock::now()));
  }
  return terms;
}

ApiResult<uint64_t> AccessControl::caller(const HttpRequest& request, RouteAccess access,
                                          const Keys& keys) const {
  const std::string_view text = key_in(request);
  if (access == RouteAccess::kControl) TRY(check_control(request));
  if (const ApiKey* key = key_of(request, keys)) return key->id();
  const bool needs_key = access == RouteAccess::kUse || access == RouteAccess::kResume;
  // A caller with control could make a key, so it needs none.
  if (needs_key && !keys.empty() && !check_control(request).ok()) return no_key(!text.empty());
  if (access == RouteAccess::kLook && !keys.empty() && !may_look(request, keys)) {
    return no_key(!text.empty());
  }
  if (is_for_programs(access) && keys.empty()) TRY(check_without_keys(request));
  return network_id(request.network);
}

bool AccessControl::is_preferred(const HttpRequest& request) const {
  const std::shared_ptr<const Keys> keys = keys_.keys();
  if (keys->empty()) return request.is_from_this_machine;
  return key_of(request, *keys) != nullptr || check_control(request).ok();
}

std::string AccessControl::client_name(const HttpRequest& request) const {
  const std::shared_ptr<const Keys> keys = keys_.keys();
  const ApiKey* const key = key_of(request, *keys);
  return key != nullptr ? key->name : request.address;
}

bool AccessControl::may_look(const HttpRequest& request) const {
  return may_look(request, *keys_.keys());
}

bool AccessControl::may_look(const HttpRequest& request, const Keys& keys) const {
  if (key_of(request, keys) != nullptr || request.is_proved) return true;
  if (keys.empty()) return check_without_keys(request).ok();
  return options_.takes_control && check_local_caller(request).ok();
}

AnswerOwner AccessControl::owner_of(const HttpRequest& request) const {
  const std::shared_ptr<const Keys> keys = keys_.keys();
  if (const ApiKey* key = key_of(request, *keys)) return {key->id(), {}};
  return {request.is_from_this_machine ? 0 : network_id(request.network),
          std::string(is_of_another_page(request) ? request.header("origin") : "")};
}

ApiResult<Ok> AccessControl::check_without_keys(const HttpRequest& request) const {
  if (!options_.is_open && !request.is_from_this_machine) {
    return ApiError{403,
                    "other machines need an API key, and there is none: create one with `lockstep "
                    "key add NAME` on the node",
                    "", "no_api_keys"};
  }
  return check_host_name(request.header("host"));
}

// After DNS rebinding a browser treats a foreign page as coming from this machine; only the name in
// Host reveals it.
ApiResult<Ok> AccessControl::check_host_name(std::string_view authority) const {
  const bool is_address =
      options_.is_open ? is_address_authority(authority) : is_loopback_authority(authority);
  if (is_address || is_named_authority(authority, host_names_)) return Ok{};
  return ApiError{
      403,
      fmt::format("without API keys the Host of a request must be {}: --host-name NAME allows "
                  "another name, and with an API key (`lockstep key add NAME`) any name is allowed",
                  options_.is_open ? "an address or a name of this machine"
                                   : "localhost or a loopback address"),
      "", "host_not_allowed"};
}

bool AccessControl::proves_secret(const HttpRequest& request) {
  const std::string_view header = request.header(kControlHeader);
  if (!secret_ || header.empty()) return false;
  const std::string target =
      request.query.empty() ? request.path : request.path + "?" + request.query;
  return secret_->is_header_of(header, port_, request.method, target) &&
         nonces_.use(ControlSecret::nonce_in(header), ControlNonces::Clock::now());
}

ApiResult<Ok> AccessControl::check_body(const HttpRequest& request) const {
  if (!request.is_proved) return Ok{};
  const std::string_view hash = ControlSecret::body_hash_in(request.header(kControlHeader));
  if (ControlSecret::body_hash_of(request.body) == hash) return Ok{};
  return no_control("the body is not the one that the request's control header was made for");
}

ApiResult<Ok> AccessControl::check_takes_control() const {
  if (options_.takes_control && secret_) return Ok{};
  return no_control(
      "this node cannot be changed over HTTP: it was started with --no-control, "
      "for use behind a proxy");
}

ApiResult<Ok> AccessControl::check_control(const HttpRequest& request) const {
  TRY(check_this_machine(request));
  if (request.is_proved) return Ok{};
  const bool has_session = sessions_.has(request.header("cookie"), PageSessions::Clock::now());
  if (has_session && may_use_cookies(request)) return Ok{};
  return no_control(
      "this needs the node's control secret: run the command as the user who runs the node, with "
      "its LOCKSTEP_HOME, or open the page at the address that `lockstep page` prints");
}

ApiResult<AccessControl::ControlOffer> AccessControl::offer_control(const HttpRequest& request,
                                                                    std::string_view nonce) const {
  // Even without control: the secret permits kLook.
  if (!secret_) TRY(check_takes_control());
  TRY(check_local_caller(request));
  if (!ControlSecret::is_nonce(nonce)) {
    return ApiError{400, "\"nonce\" must be 64 hex digits in lower case", "nonce", "invalid_value"};
  }
  auto own = nonces_.make(ControlNonces::Clock::now());
  if (!own.ok()) return internal_error(own.error());
  auto proof = secret_->proof(nonce, own.value(), port_);
  if (!proof.ok()) return internal_error(proof.error());
  return ControlOffer{std::move(own.value()), std::move(proof.value())};
}

ApiResult<std::string> AccessControl::make_page_code() {
  auto code = sessions_.make_code(PageSessions::Clock::now());
  if (!code.ok()) return internal_error(code.error());
  return std::move(code.value());
}

ApiResult<std::string> AccessControl::open_page(const HttpRequest& request, std::string_view code) {
  TRY(check_this_machine(request));
  auto cookie = sessions_.open(code, PageSessions::Clock::now());
  if (cookie.ok()) return std::move(cookie.value());
  if (cookie.error().code != ErrorCode::kNotFound) return internal_error(cookie.error());
  return no_control(cookie.error().message);
}

bool AccessControl::is_foreign_page(const HttpRequest& request) const {
  return is_of_another_page(request) && !is_allowed_origin(request.header("origin"));
}

bool AccessControl::is_allowed_origin(std::string_view origin) const {
  return std::any_of(
      options_.origins.begin(), options_.origins.end(),
      [&](const std::string& allowed) { return allowed == kAnyOrigin || allowed == origin; });
}

std::vector<std::pair<std::string, std::string>> AccessControl::headers(
    const HttpRequest& request) const {
  if (options_.origins.empty()) return {};
  std::vector<std::pair<std::string, std::string>> list{{"Vary", "Origin"}};
  const std::string_view origin = request.header("origin");
  if (origin.empty() || !is_allowed_origin(origin)) return list;
  list.emplace_back("Access-Control-Allow-Origin", origin);
  list.emplace_back("Access-Control-Expose-Headers",
                    "Retry-After, x-lockstep-ignored-fields, x-lockstep-warnings, x-request-id, "
                    "request-id, x-lockstep-stream");
  return list;
}

std::optional<HttpResponse> AccessControl::preflight(const HttpRequest& request) const {
  const std::string_view method = request.header("access-control-request-method");
  const std::string_view origin = request.header("origin");
  if (request.method != "OPTIONS" || method.empty() || !is_allowed_origin(origin)) {
    return std::nullopt;
  }
  HttpResponse response{.status = 200, .content_type = "", .body = "", .headers = headers(request)};
  const std::string_view asked = request.header("access-control-request-headers");
  response.headers.emplace_back("Access-Control-Allow-Methods", "GET, POST, DELETE");
  response.headers.emplace_back("Access-Control-Allow-Headers",
                                asked.empty() ? "authorization, content-type, x-api-key" : asked);
  response.headers.emplace_back("Access-Control-Max-Age", kPreflightSeconds);
  return response;
}

}  // namespace lockstep
