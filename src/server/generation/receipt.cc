#include "server/generation/receipt.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <optional>
#include <utility>

#include "base/byte_text.h"
#include "base/crypto/hasher.h"
#include "base/hex.h"
#include "base/named_values.h"

namespace lockstep {
namespace {

constexpr std::string_view kHead = "lockstep-receipt-1";
constexpr size_t kVersionBytesMax = 64;
constexpr size_t kFields = 7;
constexpr NamedValues<AnswerEnd, 3> kEndNames{
    {{AnswerEnd::kToken, "end"}, {AnswerEnd::kLength, "length"}, {AnswerEnd::kString, "string"}}};

std::optional<uint64_t> parse_seed(std::string_view text) {
  uint64_t seed = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
  const bool is_whole = error == std::errc() && end == text.data() + text.size();
  return is_whole && fmt::format("{}", seed) == text ? std::optional(seed) : std::nullopt;
}

bool is_version(std::string_view text) {
  return !text.empty() && text.size() <= kVersionBytesMax;
}

bool is_hash(std::string_view text) {
  return is_hex(text, kSha256Digits);
}

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  while (parts.size() <= kFields) {
    const size_t end = text.find(':');
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return parts;
}

std::string hash_of(std::string_view text) {
  return to_hex(sha256(bytes_of(text)));
}

std::string ids_line(std::string_view name, std::span<const int32_t> ids) {
  return fmt::format("{} {}{}{}\n", name, ids.size(), ids.empty() ? "" : " ", fmt::join(ids, " "));
}

// With its length, since it may have any characters.
std::string text_line(std::string_view name, std::string_view text) {
  return fmt::format("{} {}\n{}\n", name, text.size(), text);
}

std::string sampling_text(const SamplingOptions& sampling) {
  std::string text;
  const auto add = [&text](std::string_view name, auto value) {
    text += fmt::format("{} {}\n", name, value);
  };
  add("seed", sampling.seed);
  add("temperature", sampling.temperature);
  add("top_k", sampling.top_k);
  add("top_p", sampling.top_p);
  add("min_p", sampling.min_p);
  add("typical_p", sampling.typical_p);
  add("repetition_penalty", sampling.repetition_penalty);
  add("penalty_tokens", sampling.penalty_tokens);
  add("presence_penalty", sampling.presence_penalty);
  add("frequency_penalty", sampling.frequency_penalty);
  add("dry_multiplier", sampling.dry_multiplier);
  add("dry_base", sampling.dry_base);
  add("dry_allowed_length", sampling.dry_allowed_length);
  add("dry_tokens", sampling.dry_tokens);
  return text;
}

}  // namespace

std::string receipt_text(const Receipt& receipt) {
  return fmt::format("{}:{}:{}:{}:{}:{}:{}", kHead, receipt.version, receipt.model, receipt.request,
                     receipt.answer, name_in(kEndNames, receipt.end), receipt.seed);
}

ApiResult<Receipt> parse_receipt(std::string_view text) {
  const std::vector<std::string_view> parts = split(text);
  const ApiError broken = bad_field(
      "receipt", "\"receipt\" must be the text that include_receipt gave, whole and unchanged");
  if (parts.size() != kFields || parts[0] != kHead || !is_version(parts[1])) return broken;
  if (!is_hash(parts[2]) || !is_hash(parts[3]) || !is_hash(parts[4])) return broken;
  const auto end = value_named(kEndNames, parts[5], "end");
  const auto seed = parse_seed(parts[6]);
  if (!end.ok() || !seed) return broken;
  return Receipt{.version = std::string(parts[1]),
                 .model = std::string(parts[2]),
                 .request = std::string(parts[3]),
                 .answer = std::string(parts[4]),
                 .end = end.value(),
                 .seed = *seed};
}

std::string request_text(const GenerateRequest& request, const std::vector<std::string>& stop) {
  std::string text = "lockstep request 1\n";
  text += ids_line("prompt", request.prompt);
  text += sampling_text(request.sampling);
  text += fmt::format("logit_bias {}", request.logit_bias.size());
  for (const LogitBias& one : request.logit_bias) {
    text += fmt::format(" {}:{}", one.token, one.bias);
  }
  text += "\n";
  text += ids_line("dry_breakers", request.dry_breakers);
  text += ids_line("stop_ids", request.stop_ids);
  text += fmt::format("min_tokens {}\n", request.min_tokens);
  text += text_line("constraint", request.constraint);
  for (const std::string& one : stop) text += text_line("stop", one);
  return text;
}

std::string request_hash(const GenerateRequest& request, const std::vector<std::string>& stop) {
  return hash_of(request_text(request, stop));
}

std::string answer_hash(std::span<const int32_t> ids, AnswerEnd end) {
  return hash_of(fmt::format("lockstep answer 1\n{}end {}\n", ids_line("tokens", ids),
                             name_in(kEndNames, end)));
}

}  // namespace lockstep
