// HttpClient: one HTTP or HTTPS connection after the other for downloads; the only user of libcurl.
// It follows redirects itself, so that the token is never sent to a host other than the first and
// nothing falls back from https to http. Proxies come from the environment. One thread uses an
// object; every transfer has deadlines and ends when `cancelled` is set.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/files/piece_journal.h"
#include "base/result.h"

namespace lockstep {

struct HttpTimes {
  std::chrono::seconds connect{10};
  std::chrono::seconds silence{20};  // a transfer below 100 bytes/s for this long is ended
  std::chrono::seconds total{0};     // of one transfer; 0: no limit
};

struct HttpGet {
  std::string url;
  std::string token;               // sent to the first host only
  std::optional<ByteRange> range;  // answered with exactly these bytes, or an error
  uint64_t whole_size = 0;         // of the file with `range`; a different one is an error
  bool stays_at_host = false;      // a redirect to another host is an error
  // Called with each part of a successful body; false ends the transfer with kCorrupt.
  std::function<bool(std::span<const std::byte>)> sink;
};

struct HubAnswer {
  int status = 0;
  std::string final_url;               // after all redirects
  std::string error_code;              // the hub's X-Error-Code: "GatedRepo", "RevisionNotFound"
  std::optional<int64_t> retry_after;  // seconds
};

class HttpClient {
 public:
  HttpClient(HttpTimes times, const std::atomic<bool>* cancelled);
  HttpClient(HttpClient&&) noexcept;
  ~HttpClient();

  // Any status is an answer; the sink is called only for 200 and 206. kPeerLost for an unreachable
  // host or a body that ends early, kTimeout, kCancelled, kCorrupt for an answer that does not fit
  // the request, kUnsupported for a server without ranges. The message names the host.
  Result<HubAnswer> get(const HttpGet& request);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// "https://host:port", for comparing and for messages.
std::string origin_of(const std::string& url);
// A path for a URL: escapes everything but letters, digits, "-._~" and, if kept, "/".
std::string url_escape(std::string_view text, bool keeps_slash);

}  // namespace lockstep
