// Filters that lay out one text: center, escape, format and truncate; and wordcount.
#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/utf8.h"
#include "chat/jinja/jinja_filters.h"
#include "chat/jinja/jinja_operators.h"
#include "chat/jinja/jinja_print.h"
#include "chat/jinja/jinja_text.h"
#include "chat/text/characters.h"

namespace lockstep::jinja {
namespace {

constexpr int64_t kCenterWidthMax = 10'000;
constexpr int64_t kTruncateLeeway = 5;  // Jinja's policy

}  // namespace

MarkedText jinja_escaped(const MarkedText& text) {
  MarkedText result;
  for (const PromptPiece& piece : text.pieces()) {
    std::string escaped;
    for (const char c : piece.text) {
      switch (c) {
        case '&':
          escaped += "&amp;";
          break;
        case '<':
          escaped += "&lt;";
          break;
        case '>':
          escaped += "&gt;";
          break;
        case '\'':
          escaped += "&#39;";
          break;
        case '"':
          escaped += "&#34;";
          break;
        default:
          escaped += c;
      }
    }
    result.append(escaped, piece.is_from_input);
  }
  return result;
}

// An odd space goes to the left if the width is odd, as in Python.
Result<Value> filter_center(Heap& heap, const Value& subject, const Arguments& arguments) {
  const int64_t width = TRY(arguments.integer(0, "width", 80));
  if (width > kCenterWidthMax) {
    return jinja_error(fmt::format("center is wider than {}", kCenterWidthMax));
  }
  const Value text = TRY(as_text(heap, subject));
  const auto size = static_cast<int64_t>(count_code_points(text.as_string()));
  if (size >= width) return text;
  const int64_t spaces = width - size;
  const int64_t left = spaces / 2 + (spaces & width & 1);
  MarkedText result(std::string(static_cast<size_t>(left), ' '), false);
  result.append(*text.text);
  result.append(std::string(static_cast<size_t>(spaces - left), ' '), false);
  Value centered = heap.text(std::move(result));
  centered.is_markup = text.is_markup;
  return centered;
}

Result<Value> filter_escape(Heap& heap, const Value& subject, const Arguments&) {
  const Value text = TRY(as_text(heap, subject));
  if (text.is_markup) return text;
  Value escaped = heap.text(jinja_escaped(*text.text));
  escaped.is_markup = true;
  return escaped;
}

Result<Value> filter_format(Heap& heap, const Value& subject, const Arguments& arguments) {
  if (!arguments.keywords.empty()) {
    return jinja_error("chat templates cannot format by keyword");
  }
  const Value text = TRY(as_text(heap, subject));
  return jinja_format(heap, *text.text, heap.list(arguments.positional, Shape::kTuple));
}

Result<Value> filter_truncate(Heap& heap, const Value& subject, const Arguments& arguments) {
  const int64_t length = TRY(arguments.integer(0, "length", 255));
  const bool kills_words = arguments.flag(1, "killwords", false);
  const Value* given = arguments.find(2, "end");
  const MarkedText end = given ? TRY(jinja_str(heap, *given)) : MarkedText("...", false);
  const Value* leeway = arguments.find(3, "leeway");
  const bool has_leeway = leeway && !leeway->is(Kind::kNone);
  const int64_t tolerated = has_leeway ? TRY(arguments.integer(3, "leeway", 0)) : kTruncateLeeway;
  const auto end_size = static_cast<int64_t>(count_code_points(end.text()));
  if (length < end_size) {
    return jinja_error(fmt::format("expected length >= {}, got {}", end_size, length));
  }
  if (tolerated < 0) return jinja_error(fmt::format("expected leeway >= 0, got {}", tolerated));
  const int64_t size = TRY(jinja_length(subject));
  if (size - tolerated <= length) return subject;
  if (!subject.is(Kind::kText)) return jinja_error("truncate needs a text");
  const std::string& text = subject.as_string();
  size_t kept = code_point_offset(text, static_cast<size_t>(length - end_size));
  if (!kills_words) {
    const size_t space = kept == 0 ? std::string::npos : text.rfind(' ', kept - 1);
    if (space != std::string::npos) kept = space;
  }
  MarkedText result = subject.text->part(0, kept);
  result.append(end);
  return heap.text(std::move(result));
}

Result<Value> filter_wordcount(Heap& heap, const Value& subject, const Arguments&) {
  const Value text = TRY(as_text(heap, subject));
  std::string_view rest = text.as_string();
  heap.charge_look(rest.size());
  int64_t count = 0;
  bool is_in_word = false;
  while (!rest.empty()) {
    const auto character = first_utf8_character(rest);
    const bool was_in_word = std::exchange(is_in_word, is_python_word(character.code_point));
    if (is_in_word && !was_in_word) ++count;
    rest.remove_prefix(character.bytes);
  }
  return Value::of(count);
}

}  // namespace lockstep::jinja
