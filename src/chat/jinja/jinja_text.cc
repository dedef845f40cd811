#include "chat/jinja/jinja_text.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/utf8.h"
#include "chat/jinja/jinja_operators.h"
#include "chat/jinja/jinja_print.h"
#include "chat/text/characters.h"

namespace lockstep::jinja {
namespace {

constexpr size_t kNowhere = std::string_view::npos;

Result<const MarkedText*> need_text(const Arguments& arguments, size_t place,
                                    std::string_view keyword) {
  const Value* value = TRY(arguments.need(place, keyword));
  if (value->is(Kind::kUndefined)) return jinja_error(value->as_string());
  if (!value->is(Kind::kText)) {
    return jinja_error(fmt::format("{} must be str, not {}", keyword, type_name(*value)));
  }
  return value->text;
}

Result<Value> strip_sides(Heap& heap, const Value& text, const Arguments& arguments, Sides sides) {
  const Value* characters = arguments.find(0, "chars");
  if (!characters || characters->is(Kind::kNone)) {
    return heap.text(stripped(*text.text, sides)).like(text);
  }
  const std::string& wanted = TRY(need_text(arguments, 0, "chars"))->text();
  return heap.text(stripped(*text.text, sides, wanted)).like(text);
}

// `affix` may be a tuple of texts, as Python allows.
Result<Value> has_affix(const Value& text, const Arguments& arguments, bool prefix) {
  const Value* affix = TRY(arguments.need(0, "affix"));
  std::vector<Value> affixes = {*affix};
  if (affix->is(Kind::kList)) affixes = affix->list->items;
  bool found = false;
  for (const Value& candidate : affixes) {
    if (candidate.is(Kind::kUndefined)) return jinja_error(candidate.as_string());
    if (!candidate.is(Kind::kText)) {
      return jinja_error(fmt::format("{} first arg must be str or a tuple of str, not {}",
                                     prefix ? "startswith" : "endswith", type_name(candidate)));
    }
    found = found || (prefix ? text.as_string().starts_with(candidate.as_string())
                             : text.as_string().ends_with(candidate.as_string()));
  }
  return Value::boolean(found);
}

struct Piece {
  size_t begin;
  size_t end;
};

Value list_of_pieces(Heap& heap, const MarkedText& text, const std::vector<Piece>& pieces) {
  std::vector<Value> items;
  for (const Piece& piece : pieces) {
    items.push_back(heap.text(text.part(piece.begin, piece.end - piece.begin)));
    if (!heap.check().ok()) break;
  }
  return heap.list(std::move(items));
}

// All words if `splits_max` < 0. The rest after the last split keeps only its trailing white space.
std::vector<Piece> split_words(std::string_view text, int64_t splits_max) {
  std::vector<Piece> pieces;
  size_t at = 0;
  const auto skip = [&](bool spaces) {
    while (at < text.size()) {
      const Utf8Character character = first_utf8_character(text.substr(at));
      if (is_python_space(character.code_point) != spaces) break;
      at += character.bytes;
    }
  };
  for (;;) {
    skip(true);
    if (at == text.size()) return pieces;
    if (splits_max >= 0 && static_cast<int64_t>(pieces.size()) == splits_max) {
      pieces.push_back({at, text.size()});
      return pieces;
    }
    const size_t begin = at;
    skip(false);
    pieces.push_back({begin, at});
  }
}

std::vector<Piece> split_at(std::string_view text, std::string_view separator, int64_t splits_max) {
  std::vector<Piece> pieces;
  size_t begin = 0;
  while (splits_max < 0 || static_cast<int64_t>(pieces.size()) < splits_max) {
    const size_t found = find_text(text, separator, begin);
    if (found == kNowhere) break;
    pieces.push_back({begin, found});
    begin = found + separator.size();
  }
  pieces.push_back({begin, text.size()});
  return pieces;
}

std::vector<Piece> split_right_at(std::string_view text, std::string_view separator,
                                  int64_t splits_max) {
  std::vector<Piece> pieces;
  size_t end = text.size();
  while (static_cast<int64_t>(pieces.size()) < splits_max && end >= separator.size()) {
    const size_t found = text.rfind(separator, end - separator.size());
    if (found == kNowhere) break;
    pieces.push_back({found + separator.size(), end});
    end = found;
  }
  pieces.push_back({0, end});
  std::reverse(pieces.begin(), pieces.end());
  return pieces;
}

size_t line_break_bytes(std::string_view text) {
  const Utf8Character first = first_utf8_character(text);
  const uint32_t c = first.code_point;
  if (c == '\r') return text.size() > 1 && text[1] == '\n' ? 2 : 1;
  const bool breaks = (c >= '\n' && c <= '\r') || (c >= 0x1C && c <= 0x1E) || c == 0x85 ||
                      c == 0x2028 || c == 0x2029;
  return breaks ? first.bytes : 0;
}

bool is_letter(uint32_t code_point) {  // as in str.title: characters with two cases
  std::string text;
  append_code_point(text, code_point);
  const MarkedText letter(text, false);
  return with_case(letter, LetterCase::kUpper).text() != text ||
         with_case(letter, LetterCase::kLower).text() != text;
}

}  // namespace

Result<Value> text_capitalize(Heap& heap, const Value& text, const Arguments&) {
  return heap.text(capitalized(*text.text)).like(text);
}

Result<Value> text_lower(Heap& heap, const Value& text, const Arguments&) {
  return heap.text(with_case(*text.text, LetterCase::kLower)).like(text);
}

Result<Value> text_upper(Heap& heap, const Value& text, const Arguments&) {
  return heap.text(with_case(*text.text, LetterCase::kUpper)).like(text);
}

Result<Value> text_title(Heap& heap, const Value& text, const Arguments&) {
  MarkedText result;
  bool inside = false;
  for (size_t at = 0; at < text.text->size();) {
    const auto character = first_utf8_character(std::string_view(text.as_string()).substr(at));
    const MarkedText part = text.text->part(at, character.bytes);
    result.append(with_case(part, inside ? LetterCase::kLower : LetterCase::kUpper));
    inside = is_letter(character.code_point);
    at += character.bytes;
  }
  return heap.text(std::move(result));
}

Result<Value> text_strip(Heap& heap, const Value& text, const Arguments& arguments) {
  return strip_sides(heap, text, arguments, Sides::kBoth);
}

Result<Value> text_strip_left(Heap& heap, const Value& text, const Arguments& arguments) {
  return strip_sides(heap, text, arguments, Sides::kLeft);
}

Result<Value> text_strip_right(Heap& heap, const Value& text, const Arguments& arguments) {
  return strip_sides(heap, text, arguments, Sides::kRight);
}

Result<Value> text_starts_with(Heap&, const Value& text, const Arguments& arguments) {
  return has_affix(text, arguments, true);
}

Result<Value> text_ends_with(Heap&, const Value& text, const Arguments& arguments) {
  return has_affix(text, arguments, false);
}

Result<Value> text_remove_prefix(Heap& heap, const Value& text, const Arguments& arguments) {
  const std::string& prefix = TRY(need_text(arguments, 0, "prefix"))->text();
  if (!text.as_string().starts_with(prefix)) return text;
  return heap.text(text.text->part(prefix.size(), text.text->size() - prefix.size()));
}

Result<Value> text_remove_suffix(Heap& heap, const Value& text, const Arguments& arguments) {
  const std::string& suffix = TRY(need_text(arguments, 0, "suffix"))->text();
  if (!text.as_string().ends_with(suffix)) return text;
  return heap.text(text.text->part(0, text.text->size() - suffix.size()));
}

Result<Value> text_find(Heap& heap, const Value& text, const Arguments& arguments) {
  const std::string& wanted = TRY(need_text(arguments, 0, "sub"))->text();
  heap.charge_look(text.text->size());
  const size_t at = find_text(text.as_string(), wanted);
  if (at == kNowhere) return Value::of(int64_t{-1});
  return Value::of(
      static_cast<int64_t>(count_code_points(std::string_view(text.as_string()).substr(0, at))));
}

Result<Value> text_count(Heap& heap, const Value& text, const Arguments& arguments) {
  const std::string& wanted = TRY(need_text(arguments, 0, "sub"))->text();
  heap.charge_look(text.text->size());
  if (wanted.empty()) return Value::of(TRY(jinja_length(text)) + 1);
  return Value::of(static_cast<int64_t>(split_at(text.as_string(), wanted, -1).size()) - 1);
}

Result<Value> text_split(Heap& heap, const Value& text, const Arguments& arguments) {
  const int64_t splits_max = TRY(arguments.integer(1, "maxsplit", -1));
  const Value* separator = arguments.find(0, "sep");
  if (!separator || separator->is(Kind::kNone)) {
    return list_of_pieces(heap, *text.text, split_words(text.as_string(), splits_max));
  }
  const std::string& wanted = TRY(need_text(arguments, 0, "sep"))->text();
  if (wanted.empty()) return jinja_error("empty separator");
  return list_of_pieces(heap, *text.text, split_at(text.as_string(), wanted, splits_max));
}

Result<Value> text_split_right(Heap& heap, const Value& text, const Arguments& arguments) {
  const int64_t splits_max = TRY(arguments.integer(1, "maxsplit", -1));
  if (splits_max < 0) return text_split(heap, text, arguments);
  const std::string& wanted = TRY(need_text(arguments, 0, "sep"))->text();
  if (wanted.empty()) return jinja_error("empty separator");
  return list_of_pieces(heap, *text.text, split_right_at(text.as_string(), wanted, splits_max));
}

Result<Value> text_split_lines(Heap& heap, const Value& text, const Arguments& arguments) {
  const bool keeps_ends = arguments.flag(0, "keepends", false);
  const std::string_view bytes = text.as_string();
  std::vector<Piece> pieces;
  size_t begin = 0;
  for (size_t at = 0; at < bytes.size();) {
    const size_t line_break = line_break_bytes(bytes.substr(at));
    if (line_break == 0) {
      at += first_utf8_character(bytes.substr(at)).bytes;
      continue;
    }
    pieces.push_back({begin, keeps_ends ? at + line_break : at});
    at += line_break;
    begin = at;
  }
  if (begin < bytes.size()) pieces.push_back({begin, bytes.size()});
  return list_of_pieces(heap, *text.text, pieces);
}

Result<Value> text_replace(Heap& heap, const Value& text, const Arguments& arguments) {
  const std::string& old_text = TRY(need_text(arguments, 0, "old"))->text();
  const MarkedText& new_text = *TRY(need_text(arguments, 1, "new"));
  const int64_t limit = TRY(arguments.integer(2, "count", -1));
  const std::string_view bytes = text.as_string();
  LimitedText out(heap.bytes_left());
  size_t begin = 0;
  for (int64_t count = 0; limit < 0 || count < limit; ++count) {
    size_t found = 0;
    if (old_text.empty()) {  // before each character and at the end
      if (begin > bytes.size() || out.overflowed()) break;
      out.append(new_text);
      if (begin == bytes.size()) break;
      found = begin + first_utf8_character(bytes.substr(begin)).bytes;
      out.append_part(*text.text, begin, found - begin);
      begin = found;
      continue;
    }
    found = find_text(bytes, old_text, begin);
    if (found == kNowhere || out.overflowed()) break;
    out.append_part(*text.text, begin, found - begin);
    out.append(new_text);
    begin = found + old_text.size();
  }
  out.append_part(*text.text, begin, bytes.size() - begin);
  if (out.overflowed()) return Error{ErrorCode::kExhausted, "a replaced text is too long"};
  return heap.text(std::move(out.text()));
}

Result<Value> join_texts(Heap& heap, const MarkedText& separator, const std::vector<Value>& items,
                         bool lenient) {
  LimitedText out(heap.bytes_left());
  for (size_t i = 0; i < items.size() && !out.overflowed(); ++i) {
    if (i > 0) out.append(separator);
    if (items[i].is(Kind::kText)) {
      out.append(*items[i].text);
    } else if (lenient) {
      out.append(TRY(jinja_str(heap, items[i])));
    } else {
      return jinja_error(
          fmt::format("sequence item {}: expected str instance, {} found", i, type_name(items[i])));
    }
  }
  if (out.overflowed()) return Error{ErrorCode::kExhausted, "a joined text is too long"};
  return heap.text(std::move(out.text()));
}

Result<Value> text_join(Heap& heap, const Value& text, const Arguments& arguments) {
  const auto items = TRY(jinja_items(heap, *TRY(arguments.need(0, "iterable"))));
  return join_texts(heap, *text.text, items, false);
}

}  // namespace lockstep::jinja
