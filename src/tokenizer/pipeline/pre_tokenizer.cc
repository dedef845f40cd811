#include "tokenizer/pipeline/pre_tokenizer.h"

#include <algorithm>
#include <utility>

#include "base/threads/work.h"
#include "base/utf8.h"
#include "tokenizer/text/byte_alphabet.h"
#include "tokenizer/text/replacement.h"

namespace lockstep {
namespace {

using Piece = TextPieces::Piece;
using Behavior = PreTokenizer::Behavior;

// A part of a piece: a match of the pattern, or the text between matches.
struct Part {
  Piece piece;
  bool is_match;
};

// Shared by all steps over one text.
struct Cutting {
  bool starts_input;
  RegexScratch& scratch;
};

// Splits `whole`. An empty match only splits. If the search gives up, the rest stays whole.
void find_parts(const PreTokenizer::Split& split, std::string_view text, Piece whole,
                RegexScratch& scratch, std::vector<Part>& parts) {
  parts.clear();
  const std::string_view subject = text.substr(whole.begin, whole.end - whole.begin);
  const auto add = [&](size_t begin, size_t end, bool is_match) {
    if (begin == end) return;
    parts.push_back({{whole.begin + begin, whole.begin + end}, is_match != split.is_inverted});
  };
  size_t done = 0;
  size_t from = 0;
  while (from < subject.size()) {
    const Regex::Match match = split.regex->next(subject, from, scratch);
    if (match.outcome != Regex::Outcome::kFound) break;
    add(done, match.begin, false);
    add(match.begin, match.end, true);
    done = match.end;
    from = match.end;
    if (match.begin == match.end && from < subject.size()) {
      from += first_utf8_character(subject.substr(from)).bytes;
    }
  }
  add(done, subject.size(), false);
}

// Joins and drops parts like Hugging Face's NormalizedString::split.
void append_parts(const std::vector<Part>& parts, Behavior behavior, std::vector<Piece>& out) {
  const size_t first = out.size();
  bool previous_is_match = false;
  for (size_t i = 0; i < parts.size(); ++i) {
    const Part& part = parts[i];
    bool joins = false;
    switch (behavior) {
      case Behavior::kIsolated:
        break;
      case Behavior::kRemoved:
        if (part.is_match) continue;
        break;
      case Behavior::kContiguous:
        joins = i > 0 && part.is_match == previous_is_match;
        break;
      case Behavior::kMergedWithPrevious:
        joins = i > 0 && part.is_match && !previous_is_match;
        break;
      case Behavior::kMergedWithNext:
        joins = i > 0 && !part.is_match && previous_is_match;
        break;
    }
    previous_is_match = part.is_match;
    if (joins && out.size() > first) {
      out.back().end = part.piece.end;
    } else {
      out.push_back(part.piece);
    }
  }
}

void cut_step(const PreTokenizer::Split& split, const Cutting& cutting, TextPieces& result) {
  std::vector<Piece> pieces;
  pieces.reserve(result.text.size() / 4 + 1);
  std::vector<Part> parts;
  for (const Piece whole : result.pieces) {
    find_parts(split, result.text, whole, cutting.scratch, parts);
    append_parts(parts, split.behavior, pieces);
  }
  result.pieces = std::move(pieces);
}

// Rewrites each piece; `rewrite` maps a piece to its new text.
template <class Rewrite>
void rewrite_pieces(TextPieces& result, const Rewrite& rewrite) {
  std::string text;
  text.reserve(result.text.size() * 2);
  for (Piece& piece : result.pieces) {
    const size_t begin = text.size();
    text += rewrite(piece);
    piece = {begin, text.size()};
  }
  result.text = std::move(text);
}

void cut_step(const PreTokenizer::Metaspace& step, const Cutting& cutting, TextPieces& result) {
  using MarkPrefix = PreTokenizer::MarkPrefix;
  rewrite_pieces(result, [&](Piece piece) {
    std::string text = replace_all(result.view(piece), {" ", step.mark});
    const bool is_first = cutting.starts_input && piece.begin == 0;
    const bool may_prepend =
        step.prefix == MarkPrefix::kAlways || (step.prefix == MarkPrefix::kFirst && is_first);
    return may_prepend && !text.starts_with(step.mark) ? step.mark + text : text;
  });
  if (!step.splits) return;
  std::vector<Piece> pieces;
  for (Piece piece : result.pieces) {
    while (piece.begin < piece.end) {
      // Searches only the piece, because there may be many.
      const size_t next = result.view(piece).find(step.mark, 1);
      const size_t end = next == std::string_view::npos ? piece.end : piece.begin + next;
      pieces.push_back({piece.begin, end});
      piece.begin = end;
    }
  }
  result.pieces = std::move(pieces);
}

void cut_step(const PreTokenizer::PrefixSpace&, const Cutting&, TextPieces& result) {
  rewrite_pieces(result, [&](Piece piece) {
    const std::string text(result.view(piece));
    return text.starts_with(' ') ? text : " " + text;
  });
}

void cut_step(const PreTokenizer::ByteText&, const Cutting&, TextPieces& result) {
  rewrite_pieces(result, [&](Piece piece) { return alphabet_of_bytes(result.view(piece)); });
}

}  // namespace

PreTokenizer::PreTokenizer(std::vector<Step> steps) : steps_(std::move(steps)) {
  for (const Step& step : steps_) is_byte_level_ |= std::holds_alternative<ByteText>(step);
  // No step reads the text after a final ByteText, so the bytes need no conversion.
  if (!steps_.empty() && std::holds_alternative<ByteText>(steps_.back())) steps_.pop_back();
}

Result<PreTokenizer> PreTokenizer::byte_level(const std::vector<std::string>& patterns) {
  std::vector<Step> steps;
  for (const std::string& pattern : patterns) {
    steps.emplace_back(Split{std::make_shared<const Regex>(TRY(Regex::compile(pattern)))});
  }
  steps.emplace_back(ByteText{});
  return PreTokenizer(std::move(steps));
}

TextPieces PreTokenizer::cut(std::string text, bool starts_input) const {
  TextPieces result;
  if (text.empty()) return result;
  result.text = std::move(text);
  result.pieces.push_back({0, result.text.size()});
  bool is_in_alphabet = false;
  RegexScratch scratch(result.text.size());
  const Cutting cutting{starts_input, scratch};
  for (const Step& step : steps_) {
    if (Work::is_over()) break;  // nobody reads the result
    std::visit([&](const auto& known) { cut_step(known, cutting, result); }, step);
    is_in_alphabet |= std::holds_alternative<ByteText>(step);
  }
  if (!is_in_alphabet) return result;
  // A piece with other characters means its own bytes, as such texts in the vocabulary do.
  rewrite_pieces(result, [&](Piece piece) {
    const std::string_view written = result.view(piece);
    return bytes_of_alphabet(written).value_or(std::string(written));
  });
  return result;
}

}  // namespace lockstep
