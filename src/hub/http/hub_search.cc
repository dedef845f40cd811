#include "hub/http/hub_search.h"

#include <fmt/core.h>

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

#include "base/utf8.h"
#include "hub/files/model_id.h"
#include "hub/http/http_client.h"
#include "json/json.h"

namespace lockstep {
namespace {

constexpr std::chrono::seconds kSearchConnectTime{4};
constexpr size_t kDateBytesMax = 40;

Status check_words(const std::string& words, int models_max) {
  const bool is_text = is_valid_utf8(words) && std::none_of(words.begin(), words.end(), [](char c) {
                         return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
                       });
  if (!is_text || words.empty() || words.size() > kSearchBytesMax) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("search for 1 to {} bytes of text", kSearchBytesMax)};
  }
  if (models_max >= 1 && models_max <= kSearchModelsMax) return Ok{};
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("a search returns 1 to {} models", kSearchModelsMax)};
}

std::optional<int64_t> count_in(const Json& model, std::string_view key) {
  const Json* value = find(model, key);
  const auto number = value == nullptr ? std::nullopt : number_of<int64_t>(*value);
  return number && *number >= 0 ? number : std::nullopt;
}

// "gated" is false, or "auto" or "manual": how access is granted.
bool is_gated(const Json& model) {
  const Json* value = find(model, "gated");
  return value != nullptr && (value->is_string() || (value->is_bool() && value->get_bool()));
}

std::string date_in(const Json& model) {
  const auto date = get_string(model, "lastModified");
  if (!date.ok() || !date.value() || date.value()->size() > kDateBytesMax) return "";
  return *date.value();
}

Result<std::vector<FoundModel>> read_answer(const std::string& endpoint, const std::string& text,
                                            int models_max) {
  const auto json = parse_json(text);
  if (!json.ok() || !json.value().is_array()) {
    return Error{ErrorCode::kCorrupt,
                 fmt::format("{} answered a search with something else than a list of models",
                             origin_of(endpoint))};
  }
  std::vector<FoundModel> models;
  for (const Json& model : json.value().get_array()) {
    const auto id = get_string(model, "id");
    // A model of another form of name could not be pulled.
    if (!id.ok() || !id.value() || !parse_model_id(*id.value()).ok()) continue;
    if (models.size() == static_cast<size_t>(models_max)) break;
    models.push_back({.id = *id.value(),
                      .downloads = count_in(model, "downloads"),
                      .likes = count_in(model, "likes"),
                      .updated = date_in(model),
                      .is_gated = is_gated(model)});
  }
  return models;
}

Error refusal_of(const std::string& endpoint, int status) {
  return {status == 429 ? ErrorCode::kExhausted : ErrorCode::kPeerLost,
          fmt::format("{} answered a search with HTTP {}", origin_of(endpoint), status)};
}

}  // namespace

Result<std::vector<FoundModel>> search_hub(const HubSettings& settings, const std::string& words,
                                           int models_max, const std::atomic<bool>* cancelled) {
  TRY(check_words(words, models_max));
  if (settings.is_offline) {
    return Error{ErrorCode::kUnsupported, "HF_HUB_OFFLINE forbids asking the hub"};
  }
  HttpClient client({.connect = kSearchConnectTime, .silence = kSearchTime, .total = kSearchTime},
                    cancelled);
  std::string text;
  const HttpGet request{
      .url = fmt::format("{}/api/models?search={}&limit={}&sort=downloads&direction=-1"
                         "&expand=downloads&expand=likes&expand=lastModified&expand=gated",
                         settings.endpoint, url_escape(words, false), models_max),
      .token = settings.token,
      .range = {},
      .stays_at_host = true,
      .sink = [&](std::span<const std::byte> bytes) {
        text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
        return text.size() <= kSearchAnswerBytesMax;
      }};
  const HubAnswer answer = TRY(client.get(request));
  if (answer.status != 200) return refusal_of(settings.endpoint, answer.status);
  return read_answer(settings.endpoint, text, models_max);
}

}  // namespace lockstep
