// HttpClient: one HTTP or HTTPS connection after the other for downloads; the only place that sees
// libcurl. It follows redirects itself, so that the token is never sent to another host than the
// first and nothing falls back from https to http. Proxies are those of the environment. One thread
// uses an object; every transfer has deadlines and ends when `cancelled` is set.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/piece_journal.h"
#include "base/result.h"

namespace lockstep {

struct HttpTimes {
  std::chrono::seconds connect{10};
  std::chrono::seconds silence{20};  // a transfer slower than 100 bytes/s for so long is ended
};

struct HttpGet {
  std::string url;
  std::string token;               // for the first host alone
  std::optional<ByteRange> range;  // answered with exactly these bytes, or an error
  uint64_t whole_size = 0;         // of the file that `range` is of; another one is an error
  // Called with each part of a successful body; false ends the transfer with kCorrupt.
  std::function<bool(std::span<const std::byte>)> sink;
};

struct HubAnswer {
  int status = 0;
  std::string final_url;               // behind all redirects
  std::string error_code;              // the hub's X-Error-Code: "GatedRepo", "RevisionNotFound"
  std::optional<int64_t> retry_after;  // seconds
};

class HttpClient {
 public:
  HttpClient(HttpTimes times, const std::atomic<bool>* cancelled);
  HttpClient(HttpClient&&) noexcept;
  ~HttpClient();

  // Any status is an answer; the sink has seen nothing unless it is 200 or 206. kPeerLost for a
  // host that is not there or a body that ends early, kTimeout, kCancelled, kCorrupt for an answer
  // that is not what was asked for, kUnsupported for a server without ranges. The sentence names
  // the host.
  Result<HubAnswer> get(const HttpGet& request);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// "https://host:port", for comparing and for messages.
std::string origin_of(const std::string& url);
// A path for a URL: everything but letters, digits, "-._~" and, if kept, "/" is escaped.
std::string url_escape(std::string_view text, bool keeps_slash);

}  // namespace lockstep
