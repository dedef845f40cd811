// The "normalizer" of a tokenizer.json.
#include <utility>

#include "base/utf8.h"
#include "tokenizer/base64.h"
#include "tokenizer/json_part.h"
#include "tokenizer/normalizer.h"

namespace lockstep {
namespace {

constexpr std::string_view kPart = "normalizer";
constexpr size_t kStepsMax = 64;
constexpr size_t kPrependBytesMax = 64;

using Steps = std::vector<Normalizer::Step>;

Status add_prepend(const Json& value, Steps& steps) {
  std::string content = TRY(required_string(kPart, value, "prepend"));
  if (content.size() > kPrependBytesMax) return unsupported_part(kPart, "long Prepend");
  steps.emplace_back(Normalizer::Prepend{std::move(content)});
  return Ok{};
}

Status add_replace(const Json& value, Steps& steps) {
  const Json* pattern = find(value, "pattern");
  if (pattern == nullptr || find(*pattern, "Regex") == nullptr) {
    steps.emplace_back(TRY(read_replacement(kPart, value)));
    return Ok{};
  }
  const std::string regex = TRY(required_string(kPart, *pattern, "Regex"));
  std::string content = TRY(required_string(kPart, value, "content"));
  if (content.size() > kPrependBytesMax) return unsupported_part(kPart, "long Replace of a Regex");
  auto compiled = std::make_shared<const Regex>(TRY(Regex::compile(regex)));
  steps.emplace_back(Normalizer::ReplaceRegex{std::move(compiled), std::move(content)});
  return Ok{};
}

Status add_strip(const Json& value, Steps& steps) {
  const bool left = TRY(flag_or(kPart, value, "strip_left", true));
  const bool right = TRY(flag_or(kPart, value, "strip_right", true));
  steps.emplace_back(Normalizer::Strip{left, right});
  return Ok{};
}

Status add_bert(const Json& value, Steps& steps) {
  Normalizer::Bert bert = {};
  bert.cleans_text = TRY(flag_or(kPart, value, "clean_text", true));
  bert.spaces_han = TRY(flag_or(kPart, value, "handle_chinese_chars", true));
  bert.lowers = TRY(flag_or(kPart, value, "lowercase", true));
  bert.strips_accents = TRY(flag_or(kPart, value, "strip_accents", bert.lowers));
  steps.emplace_back(bert);
  return Ok{};
}

Status add_precompiled(const Json& value, Steps& steps) {
  const std::string text = TRY(required_string(kPart, value, "precompiled_charsmap"));
  const auto bytes = decode_base64(text);
  if (!bytes) return corrupt_part(kPart, "has a charsmap that is not base64");
  if (bytes->empty()) return Ok{};
  steps.emplace_back(std::make_shared<const Charsmap>(TRY(Charsmap::parse(*bytes))));
  return Ok{};
}

// Null for a type that has no form.
const NormalForm* normal_form(std::string_view type) {
  static constexpr std::pair<std::string_view, NormalForm> kForms[] = {{"NFC", NormalForm::kNfc},
                                                                       {"NFD", NormalForm::kNfd},
                                                                       {"NFKC", NormalForm::kNfkc},
                                                                       {"NFKD", NormalForm::kNfkd}};
  for (const auto& form : kForms) {
    if (form.first == type) return &form.second;
  }
  return nullptr;
}

// JSON's depth limit bounds the recursion through sequences.
Status add_step(const Json& value, Steps& steps) {
  const std::string_view type = TRY(type_of(kPart, value));
  if (type == "Sequence") {
    const Json* parts = find(value, "normalizers");
    if (parts == nullptr || !parts->is_array()) {
      return corrupt_part(kPart, "Sequence has no parts");
    }
    for (const Json& part : parts->get_array()) TRY(add_step(part, steps));
    return Ok{};
  }
  if (steps.size() == kStepsMax) return unsupported_part(kPart, "chain of so many steps");
  if (const NormalForm* form = normal_form(type)) {
    steps.emplace_back(*form);
    return Ok{};
  }
  if (type == "Lowercase") {
    steps.emplace_back(Normalizer::Lowercase{});
    return Ok{};
  }
  if (type == "StripAccents") {
    steps.emplace_back(Normalizer::StripAccents{});
    return Ok{};
  }
  if (type == "Prepend") return add_prepend(value, steps);
  if (type == "Replace") return add_replace(value, steps);
  if (type == "Strip") return add_strip(value, steps);
  if (type == "BertNormalizer") return add_bert(value, steps);
  if (type == "Precompiled") return add_precompiled(value, steps);
  return unsupported_part(kPart, type);
}

}  // namespace

Result<Normalizer> Normalizer::read(const Json* value) {
  Steps steps;
  if (is_missing(value)) return Normalizer();
  TRY(add_step(*value, steps));
  std::vector<Replacement> replacements;
  size_t regex_count = 0;
  size_t charsmap_count = 0;
  for (const Step& step : steps) {
    if (const auto* replacement = std::get_if<Replacement>(&step)) {
      replacements.push_back(*replacement);
    }
    regex_count += std::holds_alternative<ReplaceRegex>(step) ? 1 : 0;
    charsmap_count += std::holds_alternative<std::shared_ptr<const Charsmap>>(step) ? 1 : 0;
  }
  TRY(check_growth(kPart, replacements));
  // Each of these may make a text longer by its own limit.
  const bool may_grow_twice = charsmap_count > 1 || regex_count > 4;
  if (may_grow_twice) return unsupported_part(kPart, "growth of the text");
  return Normalizer(std::move(steps));
}

}  // namespace lockstep
