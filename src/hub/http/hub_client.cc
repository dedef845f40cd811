#include "hub/http/hub_client.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kPauseFirst{250};
constexpr std::chrono::milliseconds kPauseMax{10'000};
constexpr std::chrono::seconds kRetryAfterMax{300};  // a longer one is reported to the user
constexpr std::chrono::milliseconds kLook{20};       // how often a pause checks `cancelled`
constexpr size_t kProgressBytes = size_t{64} << 10;  // less at once does not count as progress

HubFailure refused(const HubSettings& settings, const ModelId& id, const HubAnswer& answer) {
  const std::string page = fmt::format("{}/{}", settings.endpoint, id.repository);
  if (answer.error_code == "GatedRepo") {
    return {{ErrorCode::kInvalidArgument,
             settings.token.empty()
                 ? fmt::format("{} is gated: accept its terms at {} and set HF_TOKEN",
                               id.repository, page)
                 : fmt::format("{} is gated and HF_TOKEN has no access: accept its terms at {}",
                               id.repository, page)}};
  }
  return {
      {ErrorCode::kInvalidArgument,
       settings.token.empty()
           ? fmt::format("{} does not exist at {} or is private; for a private model set HF_TOKEN",
                         id.repository, settings.endpoint)
           : fmt::format("{} refuses HF_TOKEN for {} (HTTP {}); is the token still good?",
                         settings.endpoint, id.repository, answer.status)}};
}

HubFailure not_found(const HubSettings& settings, const ModelId& id, const HubAnswer& answer) {
  if (answer.error_code == "EntryNotFound") {
    return {{ErrorCode::kNotFound, fmt::format("a file of {} is no longer at {}; pull it again",
                                               id.text(), settings.endpoint)}};
  }
  if (answer.error_code == "RevisionNotFound" || !id.revision.empty()) {
    return {{ErrorCode::kNotFound,
             fmt::format("{} has no model {} with a revision {}", settings.endpoint, id.repository,
                         id.revision_or_default())}};
  }
  return {{ErrorCode::kNotFound,
           fmt::format("there is no model {} at {}", id.repository, settings.endpoint)}};
}

HubFailure busy(const HubSettings& settings, const HubAnswer& answer) {
  const std::chrono::seconds wait(answer.retry_after.value_or(0));
  HubFailure failure{
      {ErrorCode::kExhausted,
       fmt::format("{} allows no more requests for now (HTTP 429)", settings.endpoint)},
      true,
      wait};
  if (wait <= kRetryAfterMax) return failure;
  failure.may_pass = false;
  failure.error.message += fmt::format("; pull again in {} minutes", (wait.count() + 59) / 60);
  return failure;
}

HubFailure failure_of(const HubSettings& settings, const ModelId& id, const HubAnswer& answer) {
  // Storage that the hub redirects to has no accounts, only URLs that expire.
  const std::string origin = origin_of(answer.final_url);
  if (origin != origin_of(settings.endpoint) && answer.status >= 400 && answer.status < 405) {
    return {{ErrorCode::kPeerLost, fmt::format("{} answered with HTTP {}", origin, answer.status)},
            true};
  }
  switch (answer.status) {
    case 401:
    case 403:
      return refused(settings, id, answer);
    case 404:
      return not_found(settings, id, answer);
    case 429:
      return busy(settings, answer);
    default:
      return {{ErrorCode::kPeerLost,
               fmt::format("{} answered with HTTP {}", settings.endpoint, answer.status)},
              answer.status >= 500 || answer.status == 408,
              std::chrono::seconds(
                  std::min<int64_t>(answer.retry_after.value_or(0), kRetryAfterMax.count()))};
  }
}

HubFailure failure_of(const Error& error) {
  return {error, error.code == ErrorCode::kPeerLost || error.code == ErrorCode::kTimeout};
}

// Pauses between consecutive tries without progress.
class Retries {
 public:
  explicit Retries(const HubOptions& options) : options_(options) {}

  void restart() { count_ = 0; }

  // Ok: try again now.
  Status after(const HubFailure& failure) {
    if (!failure.may_pass) return failure.error;
    if (count_ >= options_.retries) {
      return count_ == 0 ? failure.error
                         : Error{failure.error.code, fmt::format("{}, even after {} retries",
                                                                 failure.error.message, count_)};
    }
    const auto own = std::min(kPauseMax, kPauseFirst * (1 << std::min(count_, 6)));
    ++count_;
    const auto end = Clock::now() + std::max<Clock::duration>(own, failure.pause);
    while (Clock::now() < end) {
      if (options_.cancelled && options_.cancelled->load(std::memory_order_relaxed)) {
        return Error{ErrorCode::kCancelled, "the download was stopped"};
      }
      std::this_thread::sleep_for(std::min<Clock::duration>(kLook, end - Clock::now()));
    }
    return Ok{};
  }

 private:
  const HubOptions& options_;
  int count_ = 0;
};

HttpTimes times_of(const HubSettings& settings) {
  return {.connect = settings.connect_timeout, .silence = settings.silence_timeout};
}

}  // namespace

Result<ModelFiles> fetch_model_files(const HubOptions& options, const ModelId& id) {
  const HubSettings& settings = options.settings;
  HttpClient client(times_of(settings), options.cancelled);
  Retries retries(options);
  std::string text;
  const HttpGet request{
      .url = fmt::format("{}/api/models/{}/revision/{}?blobs=true", settings.endpoint,
                         id.repository, url_escape(id.revision_or_default(), false)),
      .token = settings.token,
      .sink = [&](std::span<const std::byte> bytes) {
        text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
        return text.size() <= kModelFilesTextMax;
      }};
  while (true) {
    text.clear();
    const auto answer = client.get(request);
    if (answer.ok() && answer.value().status == 200) return parse_model_files(text);
    TRY(retries.after(answer.ok() ? failure_of(settings, id, answer.value())
                                  : failure_of(answer.error())));
  }
}

HubSource::HubSource(HubOptions options, ModelId id, std::string commit)
    : options_(std::move(options)),
      id_(std::move(id)),
      commit_(std::move(commit)),
      client_(times_of(options_.settings), options_.cancelled) {}

Result<bool> HubSource::fetch(const PieceRequest& request, std::span<std::byte> bytes) {
  Retries retries(options_);
  size_t done = 0;
  size_t counted = 0;  // of `done`, at the last progress
  while (done < bytes.size()) {
    const auto failure = fetch_part(request.file, request.range, bytes, done);
    if (!failure) continue;
    if (done - counted >= kProgressBytes) {
      counted = done;
      retries.restart();
    }
    TRY(retries.after(*failure));
  }
  return true;
}

std::optional<HubFailure> HubSource::fetch_part(const HubFile& file, ByteRange range,
                                                std::span<std::byte> bytes, size_t& done) {
  const HubSettings& settings = options_.settings;
  const auto redirect = redirects_.find(file.hash);
  const bool is_redirected = redirect != redirects_.end();
  HttpGet request;
  request.url = is_redirected ? redirect->second
                              : fmt::format("{}/{}/resolve/{}/{}", settings.endpoint,
                                            id_.repository, commit_, url_escape(file.name, true));
  if (!is_redirected) request.token = settings.token;
  request.range = ByteRange{range.begin + done, range.end};
  request.whole_size = file.size;
  request.sink = [&](std::span<const std::byte> part) {
    if (part.size() > bytes.size() - done) return false;
    std::memcpy(bytes.data() + done, part.data(), part.size());
    done += part.size();
    if (options_.received) options_.received->fetch_add(part.size(), std::memory_order_relaxed);
    return true;
  };
  const auto answer = client_.get(request);
  if (!answer.ok()) {
    if (is_redirected) redirects_.erase(redirect);
    return failure_of(answer.error());
  }
  if (answer.value().status == 200 || answer.value().status == 206) {
    if (answer.value().final_url != request.url) redirects_[file.hash] = answer.value().final_url;
    return std::nullopt;
  }
  if (!is_redirected || answer.value().status == 429) {
    return failure_of(settings, id_, answer.value());
  }
  redirects_.erase(redirect);  // such URLs expire: ask the hub for another
  return fetch_part(file, range, bytes, done);
}

}  // namespace lockstep
