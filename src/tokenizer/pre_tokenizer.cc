#include "tokenizer/pre_tokenizer.h"

#include <algorithm>
#include <utility>

#include "base/utf8.h"
#include "tokenizer/json_part.h"
#include "tokenizer/replacement.h"

namespace lockstep {
namespace {

constexpr std::string_view kPart = "pre_tokenizer";

bool is_one_character(std::string_view text) {
  if (text.empty()) return false;
  const Utf8Character character = first_utf8_character(text);
  return character.state == Utf8State::kValid && character.bytes == text.size();
}

std::vector<std::string> split_before(std::string_view text, std::string_view mark) {
  std::vector<std::string> pieces;
  while (!text.empty()) {
    const size_t end = std::min(text.find(mark, 1), text.size());
    pieces.emplace_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return pieces;
}

}  // namespace

Result<PreTokenizer> PreTokenizer::read(const Json* value) {
  PreTokenizer result;
  if (is_missing(value)) return result;
  const std::string_view type = TRY(type_of(kPart, *value));
  if (type != "Metaspace") return unsupported_part(kPart, type);
  result.is_metaspace_ = true;
  result.mark_ = TRY(required_string(kPart, *value, "replacement"));
  if (!is_one_character(result.mark_)) return corrupt_part(kPart, "replaces by no character");
  result.splits_ = TRY(flag_or(kPart, *value, "split", true));

  const auto scheme = get_string(*value, "prepend_scheme");
  if (!scheme.ok()) return corrupt_part(kPart, "is wrong: " + scheme.error().message);
  if (!scheme.value()) {  // written before there were schemes
    const bool prepends = TRY(flag_or(kPart, *value, "add_prefix_space", true));
    result.prepend_ = prepends ? Prepend::kAlways : Prepend::kNever;
  } else if (*scheme.value() == "always") {
    result.prepend_ = Prepend::kAlways;
  } else if (*scheme.value() == "first") {
    result.prepend_ = Prepend::kFirst;
  } else if (*scheme.value() != "never") {
    return unsupported_part(kPart, "prepend_scheme " + *scheme.value());
  }
  return result;
}

std::vector<std::string> PreTokenizer::cut(std::string text, bool starts_input) const {
  if (text.empty()) return {};
  if (is_metaspace_) {
    text = replace_all(text, {" ", mark_});
    const bool may_prepend =
        prepend_ == Prepend::kAlways || (prepend_ == Prepend::kFirst && starts_input);
    if (may_prepend && !text.starts_with(mark_)) text = mark_ + text;
    if (splits_) return split_before(text, mark_);
  }
  std::vector<std::string> whole;
  whole.push_back(std::move(text));
  return whole;
}

}  // namespace lockstep
