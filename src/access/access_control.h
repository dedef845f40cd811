// AccessControl: authorizes a request before its body is read. With API keys it requires one,
// without keys only programs on this machine may call; web pages need an allowed origin, clients
// have rate limits, and changes to the node need its control secret. Used by the node's server and
// the router, on the HTTP server's thread unless noted.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "access/api_error.h"
#include "access/api_keys.h"
#include "access/control_nonces.h"
#include "access/control_secret.h"
#include "access/key_sessions.h"
#include "access/page_sessions.h"
#include "access/request_limiter.h"
#include "net/http/http_server.h"

namespace lockstep {

struct AccessOptions {
  std::filesystem::path keys;           // the file of API keys; empty: no keys
  bool is_open = false;                 // without keys other machines may also call
  std::vector<std::string> origins;     // allowed web pages, as "https://example.org"; "*": any
  std::vector<std::string> host_names;  // allowed in Host, besides this machine's own
  RequestLimiter::Limits limits;
  std::filesystem::path control_folder;  // of the control secret; empty: no caller has control
  // False: nothing can change the node over HTTP, and with keys no caller counts as a program on
  // this machine. For a node behind a proxy, where all callers seem to be local.
  bool takes_control = true;
};

// Whom an answer that outlives its connection belongs to. Values.
struct AnswerOwner {
  uint64_t caller = 0;  // a key, else a network; 0: this machine
  std::string page;     // without a key: the origin of the page of another site, if one sent it

  bool operator==(const AnswerOwner&) const = default;
};

// The access that a route requires.
enum class RouteAccess : uint8_t {
  kAnybody,  // reveals nothing important, or checks its callers itself
  kLook,     // a key, or a program on this machine
  kUse,      // a key or control if there are keys; counts towards the client's limits
  kResume,   // the same callers, for an answer that counts already
  kControl,  // the control secret or a page session, on this machine
};

class AccessControl {
 public:
  static Result<std::unique_ptr<AccessControl>> open(AccessOptions options);

  // kInvalidArgument if other machines could reach a server on `host` although there is neither a
  // key nor is_open.
  Status check_host(const std::string& host) const;
  // The server's port, part of what is proved; set before it serves.
  void set_port(uint16_t port) {
    port_ = port;
    key_sessions_.set_port(port);
  }
  uint16_t port() const { return port_; }

  // 401, 403 or 429; else the terms of the answer: its caller, its permit, and the headers that let
  // a page read it. A refusal needs these headers too, see headers().
  // Sets request.is_proved.
  ApiResult<HttpReply::Terms> admit(HttpRequest& request, RouteAccess access);
  // Whether an admitted request may use the memory reserved for callers with a key or, without
  // keys, for programs on this machine.
  bool is_preferred(const HttpRequest& request) const;
  // The sender of a request, for people: the name of its key, else its address.
  std::string client_name(const HttpRequest& request) const;
  // For every answer to a request, even a refusal.
  std::vector<std::pair<std::string, std::string>> headers(const HttpRequest& request) const;

  // The answer to a browser's CORS preflight request; nullopt if it is not one.
  std::optional<HttpResponse> preflight(const HttpRequest& request) const;

  // Whether the body of an admitted request is the one that its head proved, if it proved any. Any
  // thread, here and below.
  ApiResult<Ok> check_body(const HttpRequest& request) const;
  // The checks of admit() for kControl and kLook.
  ApiResult<Ok> check_control(const HttpRequest& request) const;
  bool may_look(const HttpRequest& request) const;
  // The owner of the answer to an admitted request.
  AnswerOwner owner_of(const HttpRequest& request) const;
  // Whether the sender is a program or the page of this machine, not through a proxy; 403 on a node
  // that is behind one.
  ApiResult<Ok> check_this_machine(const HttpRequest& request) const;

  // A nonce for one request of a caller with the secret, and the proof that this server made it.
  struct ControlOffer {
    std::string nonce;
    std::string proof;
  };
  ApiResult<ControlOffer> offer_control(const HttpRequest& request, std::string_view nonce) const;
  // A code that gives a browser on this machine a page session, once.
  ApiResult<std::string> make_page_code();
  // The value of Set-Cookie for a browser that has a code.
  ApiResult<std::string> open_page(const HttpRequest& request, std::string_view code);

  // A sender that the page stands for, as the page needs to know it.
  struct SessionFacts {
    bool has_control = false;
    bool has_key = false;   // or a session of one
    bool has_keys = false;  // the node has some, so that senders without control need one
  };
  // 403 for a sender whose requests are refused anyway.
  ApiResult<SessionFacts> session_facts(const HttpRequest& request) const;
  // The value of Set-Cookie for the own page, which sends a key: 401 for an invalid key, 403 for
  // another page, 409 if there are no keys.
  ApiResult<std::string> open_key_session(const HttpRequest& request);
  // Ends the session of the sender's cookie.
  struct EndedSession {
    bool has_ended = false;  // there was one
    std::string set_cookie;
  };
  ApiResult<EndedSession> close_key_session(const HttpRequest& request);

 private:
  using Keys = std::vector<ApiKey>;

  AccessControl(AccessOptions options, KeyRing keys, std::optional<ControlSecret> secret,
                ControlNonces nonces, PageSessions sessions);

  bool is_allowed_origin(std::string_view origin) const;
  bool is_foreign_page(const HttpRequest& request) const;
  // Uses up the nonce of the request's header.
  bool proves_secret(const HttpRequest& request);
  ApiResult<Ok> check_takes_control() const;
  bool may_look(const HttpRequest& request, const Keys& keys) const;
  // The key that a request sends or whose session it has; null: none. A key that is sent counts
  // alone, right or wrong.
  const ApiKey* key_of(const HttpRequest& request, const Keys& keys) const;
  ApiResult<uint64_t> caller(const HttpRequest& request, RouteAccess access,
                             const Keys& keys) const;
  ApiResult<Ok> check_without_keys(const HttpRequest& request) const;
  ApiResult<Ok> check_host_name(std::string_view authority) const;

  const AccessOptions options_;
  const std::vector<std::string> host_names_;  // allowed in Host
  const KeyRing keys_;
  const std::optional<ControlSecret> secret_;
  ControlNonces nonces_;
  PageSessions sessions_;
  KeySessions key_sessions_;
  uint16_t port_ = 0;
  RequestLimiter limiter_;
};

}  // namespace lockstep
