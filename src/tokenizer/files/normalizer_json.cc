// The "normalizer" of a tokenizer.json.
#include <utility>

#include "base/utf8.h"
#include "tokenizer/pipeline/normalizer.h"
#include "tokenizer/text/base64.h"
#include "tokenizer/text/json_part.h"

namespace lockstep {
namespace {

constexpr std::string_view kNormalizerPart = "normalizer";
constexpr size_t kNormalizerStepsMax = 64;
constexpr size_t kPrependBytesMax = 64;

using NormalizerSteps = std::vector<Normalizer::Step>;

Status add_prepend(const Json& value, NormalizerSteps& steps) {
  std::string content = TRY(required_string(kNormalizerPart, value, "prepend"));
  if (content.size() > kPrependBytesMax) return unsupported_part(kNormalizerPart, "long Prepend");
  steps.emplace_back(Normalizer::Prepend{std::move(content)});
  return Ok{};
}

Status add_replace(const Json& value, NormalizerSteps& steps) {
  const Json* pattern = find(value, "pattern");
  if (pattern == nullptr || find(*pattern, "Regex") == nullptr) {
    steps.emplace_back(TRY(read_replacement(kNormalizerPart, value)));
    return Ok{};
  }
  const std::string regex = TRY(required_string(kNormalizerPart, *pattern, "Regex"));
  std::string content = TRY(required_string(kNormalizerPart, value, "content"));
  if (content.size() > kPrependBytesMax)
    return unsupported_part(kNormalizerPart, "long Replace of a Regex");
  auto compiled = std::make_shared<const Regex>(TRY(Regex::compile(regex)));
  steps.emplace_back(Normalizer::ReplaceRegex{std::move(compiled), std::move(content)});
  return Ok{};
}

Status add_strip(const Json& value, NormalizerSteps& steps) {
  const bool left = TRY(flag_or(kNormalizerPart, value, "strip_left", true));
  const bool right = TRY(flag_or(kNormalizerPart, value, "strip_right", true));
  steps.emplace_back(Normalizer::Strip{left, right});
  return Ok{};
}

Status add_bert(const Json& value, NormalizerSteps& steps) {
  Normalizer::Bert bert = {};
  bert.cleans_text = TRY(flag_or(kNormalizerPart, value, "clean_text", true));
  bert.spaces_han = TRY(flag_or(kNormalizerPart, value, "handle_chinese_chars", true));
  bert.lowers = TRY(flag_or(kNormalizerPart, value, "lowercase", true));
  bert.strips_accents = TRY(flag_or(kNormalizerPart, value, "strip_accents", bert.lowers));
  steps.emplace_back(bert);
  return Ok{};
}

Status add_precompiled(const Json& value, NormalizerSteps& steps) {
  const std::string text = TRY(required_string(kNormalizerPart, value, "precompiled_charsmap"));
  const auto bytes = decode_base64(text);
  if (!bytes) return corrupt_part(kNormalizerPart, "has a charsmap that is not base64");
  if (bytes->empty()) return Ok{};
  steps.emplace_back(std::make_shared<const Charsmap>(TRY(Charsmap::parse(*bytes))));
  return Ok{};
}

// Null for other types.
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
Status add_normalizer_step(const Json& value, NormalizerSteps& steps) {
  const std::string_view type = TRY(type_of(kNormalizerPart, value));
  if (type == "Sequence") {
    const Json* parts = find(value, "normalizers");
    if (parts == nullptr || !parts->is_array()) {
      return corrupt_part(kNormalizerPart, "Sequence has no parts");
    }
    for (const Json& part : parts->get_array()) TRY(add_normalizer_step(part, steps));
    return Ok{};
  }
  if (steps.size() == kNormalizerStepsMax)
    return unsupported_part(kNormalizerPart, "chain of this many steps");
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
  return unsupported_part(kNormalizerPart, type);
}

}  // namespace

Result<Normalizer> Normalizer::read(const Json* value) {
  NormalizerSteps steps;
  if (is_missing(value)) return Normalizer();
  TRY(add_normalizer_step(*value, steps));
  std::vector<Replacement> replacements;
  for (const Step& step : steps) {
    if (const auto* replacement = std::get_if<Replacement>(&step)) {
      replacements.push_back(*replacement);
    }
  }
  TRY(check_growth(kNormalizerPart, replacements));
  return Normalizer(std::move(steps));
}

}  // namespace lockstep
