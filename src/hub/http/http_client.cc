#include "hub/http/http_client.h"

#include <curl/curl.h>
#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "base/check.h"
#include "base/version.h"

namespace lockstep {
namespace {

constexpr int kRedirectsMax = 5;
constexpr long kSlowestBytesPerSecond = 100;

// Shared by the callbacks of one transfer.
struct Transfer {
  CURL* handle = nullptr;
  const HttpGet* request = nullptr;
  const std::atomic<bool>* cancelled = nullptr;
  HubAnswer answer;
  std::optional<ByteRange> content_range;
  std::optional<uint64_t> whole_size;
  uint64_t bytes = 0;  // of the body, so far
  bool is_checked = false;
  std::optional<Error> refusal;  // why we ended it
};

std::optional<uint64_t> number(std::string_view text) {
  uint64_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}

// "bytes 0-99/1234" (RFC 9110, section 14.4).
void read_content_range(std::string_view text, Transfer& transfer) {
  constexpr std::string_view kUnit = "bytes ";
  const size_t dash = text.find('-'), slash = text.find('/');
  if (!text.starts_with(kUnit) || dash == text.npos || slash == text.npos || slash < dash) return;
  const auto first = number(text.substr(kUnit.size(), dash - kUnit.size()));
  const auto last = number(text.substr(dash + 1, slash - dash - 1));
  if (!first || !last || *last < *first) return;
  transfer.content_range = ByteRange{*first, *last + 1};
  transfer.whole_size = number(text.substr(slash + 1));
}

size_t on_header(char* data, size_t size, size_t count, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  std::string_view line(data, size * count);
  const size_t colon = line.find(':');
  if (colon == line.npos) return size * count;
  std::string name(line.substr(0, colon));
  for (char& c : name) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  std::string_view value = line.substr(colon + 1);
  while (!value.empty() && value.front() == ' ') value.remove_prefix(1);
  while (!value.empty() && (value.back() == '\r' || value.back() == '\n' || value.back() == ' ')) {
    value.remove_suffix(1);
  }
  if (name == "content-range") read_content_range(value, transfer);
  if (name == "x-error-code") transfer.answer.error_code = value.substr(0, 100);
  if (name == "retry-after") {
    if (const auto seconds = number(value)) {
      transfer.answer.retry_after = static_cast<int64_t>(std::min<uint64_t>(*seconds, 1 << 30));
    }
  }
  return size * count;
}

// Before the first byte of a body is used: is it the requested range?
std::optional<Error> check_range(const Transfer& transfer) {
  const HttpGet& request = *transfer.request;
  if (!request.range) return std::nullopt;
  const std::string origin = origin_of(request.url);
  if (transfer.answer.status == 200 && request.range->begin == 0) return std::nullopt;  // counted
  if (transfer.answer.status == 200) {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("{} does not serve parts of files, which a download needs", origin)};
  }
  if (transfer.whole_size && *transfer.whole_size != request.whole_size) {
    return Error{ErrorCode::kCorrupt,
                 fmt::format("{} sent a file of {} bytes, but its list says {}", origin,
                             *transfer.whole_size, request.whole_size)};
  }
  if (transfer.content_range && transfer.content_range->begin == request.range->begin &&
      transfer.content_range->end == request.range->end) {
    return std::nullopt;
  }
  return Error{ErrorCode::kCorrupt,
               fmt::format("{} answered with another part of the file than bytes {} to {}", origin,
                           request.range->begin, request.range->end)};
}

size_t on_body(char* data, size_t size, size_t count, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  const size_t bytes = size * count;
  long status = 0;
  curl_easy_getinfo(transfer.handle, CURLINFO_RESPONSE_CODE, &status);
  transfer.answer.status = static_cast<int>(status);
  if (status != 200 && status != 206) return bytes;  // an error's body is not shown
  if (!transfer.is_checked) {
    transfer.is_checked = true;
    transfer.refusal = check_range(transfer);
  }
  if (transfer.refusal) return 0;
  transfer.bytes += bytes;
  const HttpGet& request = *transfer.request;
  if ((!request.range || transfer.bytes <= request.range->size()) &&
      request.sink(std::as_bytes(std::span(data, bytes)))) {
    return bytes;
  }
  transfer.refusal = Error{
      ErrorCode::kCorrupt,
      fmt::format("{} sent more bytes than expected{}", origin_of(request.url),
                  status == 200 && request.range ? ", or does not serve parts of files" : "")};
  return 0;
}

int on_progress(void* user, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  const auto* cancelled = static_cast<const Transfer*>(user)->cancelled;
  return cancelled && cancelled->load(std::memory_order_relaxed) ? 1 : 0;
}

void start_curl() {
  static const CURLcode started = curl_global_init(CURL_GLOBAL_DEFAULT);
  LOCKSTEP_CHECK(started == CURLE_OK);
}

struct FreeList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

Error failure(CURLcode code, const std::string& url, const char* detail) {
  const std::string origin = origin_of(url);
  switch (code) {
    case CURLE_OPERATION_TIMEDOUT:
      return {ErrorCode::kTimeout, fmt::format("{} does not answer in time", origin)};
    case CURLE_ABORTED_BY_CALLBACK:
      return {ErrorCode::kCancelled, "the download was stopped"};
    case CURLE_PARTIAL_FILE:
    case CURLE_RECV_ERROR:
    case CURLE_GOT_NOTHING:
      return {ErrorCode::kPeerLost, fmt::format("{} ended its answer early", origin)};
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_URL_MALFORMAT:
      return {ErrorCode::kInvalidArgument,
              fmt::format("{} cannot be used: {}", origin, curl_easy_strerror(code))};
    default:
      return {ErrorCode::kPeerLost, fmt::format("{} cannot be reached: {}", origin,
                                                *detail ? detail : curl_easy_strerror(code))};
  }
}

}  // namespace

struct HttpClient::State {
  struct Free {
    void operator()(CURL* curl) const { curl_easy_cleanup(curl); }
  };
  std::unique_ptr<CURL, Free> curl;
  HttpTimes times;
  const std::atomic<bool>* cancelled;

  // One request without following redirects; the target of one is stored in `redirect`.
  Result<HubAnswer> get_once(const HttpGet& request, std::string& redirect);
};

HttpClient::HttpClient(HttpTimes times, const std::atomic<bool>* cancelled) {
  start_curl();
  state_ = std::make_unique<State>();
  state_->curl.reset(curl_easy_init());
  state_->times = times;
  state_->cancelled = cancelled;
}

HttpClient::HttpClient(HttpClient&&) noexcept = default;
HttpClient::~HttpClient() = default;

Result<HubAnswer> HttpClient::State::get_once(const HttpGet& request, std::string& redirect) {
  CURL* const handle = curl.get();
  if (handle == nullptr) {
    return Error{ErrorCode::kExhausted, "out of memory for a request to the hub"};
  }
  curl_easy_reset(handle);  // keeps connections
  Transfer transfer{.handle = handle, .request = &request, .cancelled = cancelled};
  char detail[CURL_ERROR_SIZE] = "";
  std::unique_ptr<curl_slist, FreeList> headers;
  if (!request.token.empty()) {
    headers.reset(curl_slist_append(nullptr, ("Authorization: Bearer " + request.token).c_str()));
  }
  std::string range;
  if (request.range) range = fmt::format("{}-{}", request.range->begin, request.range->end - 1);
  curl_easy_setopt(handle, CURLOPT_URL, request.url.c_str());
  curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(handle, CURLOPT_USERAGENT, fmt::format("lockstep/{}", kVersion).c_str());
  curl_easy_setopt(handle, CURLOPT_HTTPHEADER, headers.get());
  if (request.range) curl_easy_setopt(handle, CURLOPT_RANGE, range.c_str());
  curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(handle, CURLOPT_ERRORBUFFER, detail);
  curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT, static_cast<long>(times.connect.count()));
  curl_easy_setopt(handle, CURLOPT_LOW_SPEED_LIMIT, kSlowestBytesPerSecond);
  curl_easy_setopt(handle, CURLOPT_LOW_SPEED_TIME, static_cast<long>(times.silence.count()));
  curl_easy_setopt(handle, CURLOPT_TIMEOUT, static_cast<long>(times.total.count()));
  curl_easy_setopt(handle, CURLOPT_HEADERFUNCTION, on_header);
  curl_easy_setopt(handle, CURLOPT_HEADERDATA, &transfer);
  curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, on_body);
  curl_easy_setopt(handle, CURLOPT_WRITEDATA, &transfer);
  curl_easy_setopt(handle, CURLOPT_XFERINFOFUNCTION, on_progress);
  curl_easy_setopt(handle, CURLOPT_XFERINFODATA, &transfer);
  curl_easy_setopt(handle, CURLOPT_NOPROGRESS, 0L);
  const CURLcode code = curl_easy_perform(handle);
  if (transfer.refusal) return *transfer.refusal;
  if (code != CURLE_OK) return failure(code, request.url, detail);
  long status = 0;
  curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
  transfer.answer.status = static_cast<int>(status);
  const bool is_success = status == 200 || status == 206;
  if (is_success && request.range && transfer.bytes != request.range->size()) {
    return Error{ErrorCode::kPeerLost, origin_of(request.url) + " ended its answer early"};
  }
  char* location = nullptr;
  curl_easy_getinfo(handle, CURLINFO_REDIRECT_URL, &location);
  if (location) redirect = location;
  return transfer.answer;
}

Result<HubAnswer> HttpClient::get(const HttpGet& request) {
  HttpGet next = request;
  const std::string origin = origin_of(request.url);
  for (int i = 0; i <= kRedirectsMax; ++i) {
    std::string redirect;
    HubAnswer answer = TRY(state_->get_once(next, redirect));
    answer.final_url = next.url;
    if (answer.status < 300 || answer.status >= 400) return answer;
    if (redirect.empty())
      return Error{ErrorCode::kCorrupt, origin + " redirects without an address"};
    if (next.url.starts_with("https://") && !redirect.starts_with("https://")) {
      return Error{ErrorCode::kCorrupt, fmt::format("{} redirects to {}, which is not encrypted",
                                                    origin, origin_of(redirect))};
    }
    if (origin_of(redirect) != origin) {
      if (request.stays_at_host) {
        return Error{ErrorCode::kCorrupt,
                     fmt::format("{} redirects to {}, where it is not followed", origin,
                                 origin_of(redirect))};
      }
      next.token.clear();  // and for later hosts
    }
    next.url = std::move(redirect);
  }
  return Error{ErrorCode::kCorrupt,
               fmt::format("{} redirects more than {} times", origin, kRedirectsMax)};
}

std::string origin_of(const std::string& url) {
  const size_t host = url.find("://");
  const size_t begin = host == url.npos ? 0 : host + 3;
  std::string origin = url.substr(0, url.find_first_of("/?#", begin));
  const size_t at = origin.rfind('@');  // messages contain no user name or password
  if (at != origin.npos && at >= begin) origin.erase(begin, at + 1 - begin);
  for (char& c : origin) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return origin;
}

std::string url_escape(std::string_view text, bool keeps_slash) {
  std::string escaped;
  for (const char c : text) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_' || c == '~' ||
                          (keeps_slash && c == '/');
    if (is_plain) {
      escaped += c;
    } else {
      escaped += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return escaped;
}

}  // namespace lockstep
