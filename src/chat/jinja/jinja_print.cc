#include "chat/jinja/jinja_print.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/check.h"
#include "base/utf8.h"
#include "chat/text/characters.h"

namespace lockstep::jinja {
namespace {

void append_escaped(LimitedText& out, uint32_t code_point, std::string_view character,
                    bool is_from_input, char quote) {
  std::string escaped;
  if (code_point == '\n') {
    escaped = "\\n";
  } else if (code_point == '\r') {
    escaped = "\\r";
  } else if (code_point == '\t') {
    escaped = "\\t";
  } else if (code_point == '\\' || code_point == static_cast<unsigned char>(quote)) {
    escaped = fmt::format("\\{}", character);
  } else if (is_python_printable(code_point)) {
    escaped = character;
  } else if (code_point < 0x100) {
    escaped = fmt::format("\\x{:02x}", code_point);
  } else if (code_point < 0x10000) {
    escaped = fmt::format("\\u{:04x}", code_point);
  } else {
    escaped = fmt::format("\\U{:08x}", code_point);
  }
  out.append(escaped, is_from_input);
}

void append_quoted(LimitedText& out, const MarkedText& text) {
  const bool single = text.text().find('\'') != std::string::npos;
  const char quote = single && text.text().find('"') == std::string::npos ? '"' : '\'';
  out.append(std::string_view(&quote, 1), false);
  for (const PromptPiece& piece : text.pieces()) {
    for (size_t at = 0; at < piece.text.size() && !out.overflowed();) {
      const std::string_view rest = std::string_view(piece.text).substr(at);
      const Utf8Character character = first_utf8_character(rest);
      append_escaped(out, character.code_point, rest.substr(0, character.bytes),
                     piece.is_from_input, quote);
      at += character.bytes;
    }
  }
  out.append(std::string_view(&quote, 1), false);
}

class ReprWriter {
 public:
  explicit ReprWriter(LimitedText& out) : out_(out) {}

  Status write(const Value& value, int depth) {
    if (depth > kValueDepthMax) return jinja_error("a value is nested too deeply to print");
    if (out_.overflowed()) return Ok{};
    switch (value.kind) {
      case Kind::kText:
        append_quoted(out_, *value.text);
        return Ok{};
      case Kind::kList:
        return write_list(*value.list, depth);
      case Kind::kDict:
        return write_dict(*value.dict, depth);
      case Kind::kNone:
        put("None");
        return Ok{};
      case Kind::kBool:
        put(value.truth ? "True" : "False");
        return Ok{};
      case Kind::kInt:
        put(fmt::format("{}", value.integer));
        return Ok{};
      case Kind::kFloat:
        put(python_float(value.floating));
        return Ok{};
      case Kind::kUndefined:
        put("Undefined");
        return Ok{};
      default:
        put(fmt::format("<{}>", type_name(value)));
        return Ok{};
    }
  }

 private:
  void put(std::string_view text) { out_.append(text, false); }

  Status write_list(const List& list, int depth) {
    const bool tuple = list.shape == Shape::kTuple;
    put(tuple ? "(" : "[");
    for (size_t i = 0; i < list.items.size(); ++i) {
      if (i > 0) put(", ");
      TRY(write(list.items[i], depth + 1));
    }
    if (tuple && list.items.size() == 1) put(",");
    put(tuple ? ")" : "]");
    return Ok{};
  }

  Status write_dict(const Dict& dict, int depth) {
    put("{");
    bool first = true;
    for (const Pair& entry : dict.entries()) {
      if (!first) put(", ");
      first = false;
      TRY(write(entry.first, depth + 1));
      put(": ");
      TRY(write(entry.second, depth + 1));
    }
    put("}");
    return Ok{};
  }

  LimitedText& out_;
};

// "123.456" from the shortest digits "123456" and the decimal exponent.
std::string place_point(std::string_view digits, int exponent) {
  if (exponent < -4 || exponent >= 16) {
    std::string result(digits.substr(0, 1));
    if (digits.size() > 1) result += fmt::format(".{}", digits.substr(1));
    return result + fmt::format("e{}{:02}", exponent < 0 ? '-' : '+', std::abs(exponent));
  }
  if (exponent < 0) return fmt::format("0.{:0>{}}{}", "", -exponent - 1, digits);
  const size_t whole = static_cast<size_t>(exponent) + 1;
  if (digits.size() <= whole) return fmt::format("{:0<{}}.0", digits, whole);
  return fmt::format("{}.{}", digits.substr(0, whole), digits.substr(whole));
}

}  // namespace

std::string python_float(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof(buffer), std::fabs(value),
                                 std::chars_format::scientific);
  LOCKSTEP_CHECK(end.ec == std::errc());
  const std::string_view written(buffer, static_cast<size_t>(end.ptr - buffer));
  const size_t mark = written.find('e');
  std::string digits(written.substr(0, 1));
  if (mark > 1) digits += written.substr(2, mark - 2);
  int exponent = 0;
  const size_t sign = written[mark + 1] == '+' ? 1 : 0;
  std::from_chars(buffer + mark + 1 + sign, end.ptr, exponent);
  return (std::signbit(value) ? "-" : "") + place_point(digits, exponent);
}

Result<MarkedText> jinja_repr(Heap& heap, const Value& value) {
  LimitedText out(std::min(heap.bytes_left(), kPromptBytesMax));
  TRY(ReprWriter(out).write(value, 0));
  if (out.overflowed()) return Error{ErrorCode::kExhausted, "a printed value is too long"};
  return std::move(out.text());
}

Result<MarkedText> jinja_str(Heap& heap, const Value& value) {
  if (value.is(Kind::kText)) return *value.text;
  if (value.is(Kind::kUndefined)) return MarkedText();
  return jinja_repr(heap, value);
}

}  // namespace lockstep::jinja
