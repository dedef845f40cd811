// The "pre_tokenizer" of a tokenizer.json.
#include <algorithm>
#include <utility>

#include "base/utf8.h"
#include "tokenizer/pipeline/pre_tokenizer.h"
#include "tokenizer/text/json_part.h"

namespace lockstep {
namespace {

constexpr std::string_view kPreTokenizerPart = "pre_tokenizer";
constexpr size_t kPreTokenizerStepsMax = 64;
constexpr const char* kGpt2Words =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr const char* kPunctuation = R"([!-/:-@\[-`{-~\p{P}])";

using PreTokenizerSteps = std::vector<PreTokenizer::Step>;
using Behavior = PreTokenizer::Behavior;

bool is_one_character(std::string_view text) {
  if (text.empty()) return false;
  const Utf8Character character = first_utf8_character(text);
  return character.state == Utf8State::kValid && character.bytes == text.size();
}

Result<Behavior> behavior_of(const Json& value, Behavior missing) {
  static constexpr std::pair<std::string_view, Behavior> kBehaviors[] = {
      {"Isolated", Behavior::kIsolated},
      {"Removed", Behavior::kRemoved},
      {"MergedWithPrevious", Behavior::kMergedWithPrevious},
      {"MergedWithNext", Behavior::kMergedWithNext},
      {"Contiguous", Behavior::kContiguous}};
  if (find(value, "behavior") == nullptr) return missing;
  const std::string name = TRY(required_string(kPreTokenizerPart, value, "behavior"));
  for (const auto& behavior : kBehaviors) {
    if (behavior.first == name) return behavior.second;
  }
  return unsupported_part(kPreTokenizerPart, "behavior " + name);
}

Status add_split(std::string_view pattern, Behavior behavior, bool is_inverted,
                 PreTokenizerSteps& steps) {
  auto regex = std::make_shared<const Regex>(TRY(Regex::compile(pattern)));
  steps.emplace_back(PreTokenizer::Split{std::move(regex), behavior, is_inverted});
  return Ok{};
}

// A pattern that matches only `text`.
std::string escaped(std::string_view text) {
  std::string pattern;
  for (const char c : text) {
    const bool is_plain = static_cast<uint8_t>(c) >= 0x80 || (c >= '0' && c <= '9') ||
                          (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == 0;
    if (!is_plain) pattern += '\\';
    pattern += c;
  }
  return pattern;
}

Status add_split(const Json& value, PreTokenizerSteps& steps) {
  const Json* pattern = find(value, "pattern");
  if (pattern == nullptr) return corrupt_part(kPreTokenizerPart, "Split has no pattern");
  const Behavior behavior = TRY(behavior_of(value, Behavior::kIsolated));
  const bool is_inverted = TRY(flag_or(kPreTokenizerPart, value, "invert", false));
  if (find(*pattern, "Regex") != nullptr) {
    const std::string regex = TRY(required_string(kPreTokenizerPart, *pattern, "Regex"));
    return add_split(regex, behavior, is_inverted, steps);
  }
  const std::string text = TRY(required_string(kPreTokenizerPart, *pattern, "String"));
  if (text.empty()) return corrupt_part(kPreTokenizerPart, "Split has an empty pattern");
  return add_split(escaped(text), behavior, is_inverted, steps);
}

template <class Step>
bool has_step(const PreTokenizerSteps& steps) {
  return std::any_of(steps.begin(), steps.end(), [](const PreTokenizer::Step& step) {
    return std::holds_alternative<Step>(step);
  });
}

// A Metaspace inserts marks, which are not in the byte alphabet. With two of them, one's marks make
// pieces for the other, so that a chain doubles the text with every step.
Status check_may_insert_marks(const PreTokenizerSteps& steps) {
  if (has_step<PreTokenizer::ByteText>(steps)) {
    return unsupported_part(kPreTokenizerPart, "Metaspace after ByteLevel");
  }
  if (has_step<PreTokenizer::Metaspace>(steps)) {
    return unsupported_part(kPreTokenizerPart, "second Metaspace");
  }
  return Ok{};
}

Status add_metaspace(const Json& value, PreTokenizerSteps& steps) {
  using MarkPrefix = PreTokenizer::MarkPrefix;
  TRY(check_may_insert_marks(steps));
  PreTokenizer::Metaspace step;
  step.mark = TRY(required_string(kPreTokenizerPart, value, "replacement"));
  if (!is_one_character(step.mark))
    return corrupt_part(kPreTokenizerPart, "does not replace by one character");
  step.splits = TRY(flag_or(kPreTokenizerPart, value, "split", true));
  const auto scheme = get_string(value, "prepend_scheme");
  if (!scheme.ok()) return corrupt_part(kPreTokenizerPart, "is wrong: " + scheme.error().message);
  if (!scheme.value()) {  // files older than the schemes
    const bool prepends = TRY(flag_or(kPreTokenizerPart, value, "add_prefix_space", true));
    step.prefix = prepends ? MarkPrefix::kAlways : MarkPrefix::kNever;
  } else if (*scheme.value() == "always") {
    step.prefix = MarkPrefix::kAlways;
  } else if (*scheme.value() == "first") {
    step.prefix = MarkPrefix::kFirst;
  } else if (*scheme.value() != "never") {
    return unsupported_part(kPreTokenizerPart, "prepend_scheme " + *scheme.value());
  }
  steps.emplace_back(std::move(step));
  return Ok{};
}

Status add_byte_level(const Json& value, PreTokenizerSteps& steps) {
  if (has_step<PreTokenizer::ByteText>(steps))
    return unsupported_part(kPreTokenizerPart, "second ByteLevel");
  if (TRY(flag_or(kPreTokenizerPart, value, "add_prefix_space", true))) {
    steps.emplace_back(PreTokenizer::PrefixSpace{});
  }
  if (TRY(flag_or(kPreTokenizerPart, value, "use_regex", true))) {
    TRY(add_split(kGpt2Words, Behavior::kIsolated, false, steps));
  }
  steps.emplace_back(PreTokenizer::ByteText{});
  return Ok{};
}

Status add_digits(const Json& value, PreTokenizerSteps& steps) {
  const bool is_individual = TRY(flag_or(kPreTokenizerPart, value, "individual_digits", false));
  return add_split(is_individual ? R"(\p{N})" : R"(\p{N}+)", Behavior::kIsolated, false, steps);
}

Status add_delimiter(const Json& value, PreTokenizerSteps& steps) {
  const std::string delimiter = TRY(required_string(kPreTokenizerPart, value, "delimiter"));
  if (delimiter.empty()) return corrupt_part(kPreTokenizerPart, "has an empty delimiter");
  return add_split(escaped(delimiter), Behavior::kRemoved, false, steps);
}

// JSON's depth limit bounds the recursion through sequences.
Status add_pre_tokenizer_step(const Json& value, PreTokenizerSteps& steps) {
  const std::string_view type = TRY(type_of(kPreTokenizerPart, value));
  if (type == "Sequence") {
    const Json* parts = find(value, "pretokenizers");
    if (parts == nullptr || !parts->is_array()) {
      return corrupt_part(kPreTokenizerPart, "Sequence has no parts");
    }
    for (const Json& part : parts->get_array()) TRY(add_pre_tokenizer_step(part, steps));
    return Ok{};
  }
  if (steps.size() >= kPreTokenizerStepsMax)
    return unsupported_part(kPreTokenizerPart, "chain of this many steps");
  if (type == "Split") return add_split(value, steps);
  if (type == "ByteLevel") return add_byte_level(value, steps);
  if (type == "Metaspace") return add_metaspace(value, steps);
  if (type == "Digits") return add_digits(value, steps);
  if (type == "CharDelimiterSplit") return add_delimiter(value, steps);
  if (type == "Punctuation") {
    const Behavior behavior = TRY(behavior_of(value, Behavior::kIsolated));
    return add_split(kPunctuation, behavior, false, steps);
  }
  if (type == "Whitespace") {
    return add_split(R"(\w+|[^\w\s]+)", Behavior::kRemoved, true, steps);
  }
  if (type == "WhitespaceSplit") return add_split(R"(\s)", Behavior::kRemoved, false, steps);
  if (type == "BertPreTokenizer") {
    TRY(add_split(R"(\s)", Behavior::kRemoved, false, steps));
    return add_split(kPunctuation, Behavior::kIsolated, false, steps);
  }
  return unsupported_part(kPreTokenizerPart, type);
}

}  // namespace

Result<PreTokenizer> PreTokenizer::read(const Json* value) {
  PreTokenizerSteps steps;
  if (!is_missing(value)) TRY(add_pre_tokenizer_step(*value, steps));
  return PreTokenizer(std::move(steps));
}

}  // namespace lockstep
