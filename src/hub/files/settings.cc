#include "hub/files/settings.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "base/files/mapped_file.h"
#include "base/log_ring.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr size_t kTokenBytesMax = kLogSecretBytesMax;
constexpr int kTimeoutSecondsMax = 3600;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::string trimmed(std::string text) {
  constexpr const char* kSpace = " \t\r\n";
  text.erase(0, std::min(text.find_first_not_of(kSpace), text.size()));
  text.erase(text.find_last_not_of(kSpace) + 1);
  return text;
}

bool is_true(const char* name) {
  std::string value = variable(name);
  for (char& c : value) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return value == "1" || value == "true" || value == "yes" || value == "on";
}

Result<std::chrono::seconds> seconds_or(const char* name, std::chrono::seconds otherwise) {
  const std::string text = variable(name);
  if (text.empty()) return otherwise;
  int value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size() || value < 1 ||
      value > kTimeoutSecondsMax) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} must be seconds from 1 to {}, not {:.100}", name,
                             kTimeoutSecondsMax, text)};
  }
  return std::chrono::seconds(value);
}

fs::path home() {
  const std::string set = variable("HF_HOME");
  if (!set.empty()) return set;
  const std::string cache = variable("XDG_CACHE_HOME");
  if (!cache.empty()) return fs::path(cache) / "huggingface";
  return fs::path(variable("HOME")) / ".cache" / "huggingface";
}

// A token is sent in a header, so it must be printable characters without spaces.
Result<std::string> read_token() {
  std::string token = trimmed(variable("HF_TOKEN"));
  if (token.empty()) {
    const std::string set = variable("HF_TOKEN_PATH");
    const auto file = read_small_file(set.empty() ? home() / "token" : fs::path(set));
    if (file.ok()) token = trimmed(file.value());
  }
  const bool is_good =
      std::all_of(token.begin(), token.end(), [](char c) { return c > 0x20 && c < 0x7f; });
  if (is_good && token.size() <= kTokenBytesMax) return token;
  return Error{ErrorCode::kInvalidArgument,
               "HF_TOKEN holds invalid characters; copy it again from the hub's settings"};
}

}  // namespace

Result<HubSettings> hub_settings_from_environment() {
  HubSettings settings;
  if (const std::string endpoint = trimmed(variable("HF_ENDPOINT")); !endpoint.empty()) {
    settings.endpoint = endpoint;
  }
  while (settings.endpoint.ends_with('/')) settings.endpoint.pop_back();
  if (!settings.endpoint.starts_with("https://") && !settings.endpoint.starts_with("http://")) {
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("HF_ENDPOINT must be an address like https://huggingface.co, not {:.200}",
                    settings.endpoint)};
  }
  settings.token = TRY(read_token());
  keep_out_of_log(settings.token);
  const std::string cache = variable("HF_HUB_CACHE");
  settings.cache = cache.empty() ? home() / "hub" : fs::path(cache);
  std::string stores = variable("LOCKSTEP_MODELS");
  while (!stores.empty()) {
    const size_t colon = std::min(stores.find(':'), stores.size());
    if (colon > 0) settings.stores.emplace_back(stores.substr(0, colon));
    stores.erase(0, colon + 1);
  }
  settings.is_offline = is_true("HF_HUB_OFFLINE");
  settings.connect_timeout = TRY(seconds_or("HF_HUB_ETAG_TIMEOUT", settings.connect_timeout));
  settings.silence_timeout = TRY(seconds_or("HF_HUB_DOWNLOAD_TIMEOUT", settings.silence_timeout));
  return settings;
}

}  // namespace lockstep
