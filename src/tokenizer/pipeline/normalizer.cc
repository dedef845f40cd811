#include "tokenizer/pipeline/normalizer.h"

#include <utility>

#include "base/threads/work.h"
#include "base/utf8.h"

namespace lockstep {
namespace {

// Limit of the growth over all steps: a factor, and some bytes for prepended text. The largest
// growth of Unicode's NFKC is 11 (U+FDFA), or 13 with spaces as "\u2581". A step that would exceed
// it leaves the rest of the text unchanged, and later steps leave all of it.
constexpr size_t kGrowthMax = 16;
constexpr size_t kGrowthBytes = 8 << 10;

template <class Function>
std::string map_characters(std::string_view text, const Function& append) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const Utf8Character character = first_utf8_character(text);
    append(result, character.code_point, text.substr(0, character.bytes));
    text.remove_prefix(character.bytes);
  }
  return result;
}

std::string strip_accents(std::string_view text) {
  return map_characters(text, [](std::string& out, uint32_t c, std::string_view character) {
    if (!is_nonspacing_mark(c)) out += character;
  });
}

// As in Hugging Face's BertNormalizer: CJK ideographs are separate words.
bool is_han(uint32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) ||
         (c >= 0x20000 && c <= 0x2A6DF) || (c >= 0x2A700 && c <= 0x2B73F) ||
         (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

std::string clean_text(std::string_view text) {
  return map_characters(text, [](std::string& out, uint32_t c, std::string_view character) {
    if (is_white_space(c)) {
      out += ' ';
    } else if (c != 0xFFFD && !is_other(c)) {
      out += character;
    }
  });
}

std::string normalise_step(const Normalizer::Prepend& step, std::string_view text,
                           size_t /*bytes_max*/) {
  return step.content + std::string(text);
}

std::string normalise_step(const Replacement& step, std::string_view text, size_t bytes_max) {
  return replace_all(text, step, bytes_max);
}

std::string normalise_step(const Normalizer::ReplaceRegex& step, std::string_view text,
                           size_t bytes_max) {
  std::string result;
  RegexScratch scratch(text.size());
  size_t copied = 0;
  size_t from = 0;
  while (from <= text.size()) {
    const Regex::Match match = step.regex->next(text, from, scratch);
    if (match.outcome != Regex::Outcome::kFound) break;
    if (result.size() + (text.size() - copied) + step.content.size() > bytes_max) break;
    result += text.substr(copied, match.begin - copied);
    result += step.content;
    copied = match.end;
    from = match.end;
    if (match.begin != match.end) continue;
    if (from == text.size()) break;
    from += first_utf8_character(text.substr(from)).bytes;
  }
  result += text.substr(copied);
  return result;
}

std::string normalise_step(NormalForm form, std::string_view text, size_t /*bytes_max*/) {
  return normalize_unicode(text, form);
}

std::string normalise_step(Normalizer::Lowercase, std::string_view text, size_t /*bytes_max*/) {
  return lowercase(text);
}

std::string normalise_step(Normalizer::StripAccents, std::string_view text, size_t /*bytes_max*/) {
  return strip_accents(text);
}

std::string normalise_step(Normalizer::Strip step, std::string_view text, size_t /*bytes_max*/) {
  if (step.left) text.remove_prefix(leading_white_space(text));
  if (step.right) text.remove_suffix(trailing_white_space(text));
  return std::string(text);
}

std::string normalise_step(const Normalizer::Bert& step, std::string_view text,
                           size_t /*bytes_max*/) {
  std::string result(text);
  if (step.cleans_text) result = clean_text(result);
  if (step.spaces_han) {
    result = map_characters(result, [](std::string& out, uint32_t c, std::string_view character) {
      if (is_han(c)) out += ' ';
      out += character;
      if (is_han(c)) out += ' ';
    });
  }
  if (step.strips_accents) result = strip_accents(normalize_unicode(result, NormalForm::kNfd));
  return step.lowers ? lowercase(result) : result;
}

std::string normalise_step(Normalizer::RemoveExtraSpaces, std::string_view text,
                           size_t /*bytes_max*/) {
  std::string result;
  for (const char c : text) {
    if (c != ' ' || (!result.empty() && result.back() != ' ')) result += c;
  }
  if (result.ends_with(' ')) result.pop_back();
  return result;
}

std::string normalise_step(const std::shared_ptr<const Charsmap>& charsmap, std::string_view text,
                           size_t bytes_max) {
  return charsmap->apply(text, bytes_max);
}

}  // namespace

std::string Normalizer::apply(std::string_view text) const {
  std::string normalized(text);
  const size_t bytes_max = text.size() * kGrowthMax + kGrowthBytes;
  for (const Step& step : steps_) {
    if (normalized.empty() || normalized.size() > bytes_max || Work::is_over()) break;
    normalized = std::visit(
        [&](const auto& known) { return normalise_step(known, normalized, bytes_max); }, step);
  }
  return normalized;
}

}  // namespace lockstep
