// "%s" % value.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "chat/jinja/jinja_operators.h"
#include "chat/jinja/jinja_print.h"
#include "chat/text/characters.h"

namespace lockstep::jinja {
namespace {

constexpr int kWidthMax = 1000;

struct Field {  // %[flags][width][.precision]conversion
  bool left = false;
  bool zeros = false;
  int width = 0;
  int precision = -1;
  char conversion = '\0';
  size_t bytes = 0;
};

int take_number(std::string_view text, size_t& at) {
  int number = 0;
  for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at) {
    number = std::min(number * 10 + (text[at] - '0'), kWidthMax);
  }
  return number;
}

Result<Field> parse_field(std::string_view text) {  // begins with %
  Field field;
  size_t at = 1;
  for (; at < text.size() && (text[at] == '-' || text[at] == '0'); ++at) {
    field.left = field.left || text[at] == '-';
    field.zeros = field.zeros || text[at] == '0';
  }
  field.width = take_number(text, at);
  if (at < text.size() && text[at] == '.') {
    ++at;
    field.precision = take_number(text, at);
  }
  if (at >= text.size()) return jinja_error("incomplete format");
  field.conversion = text[at];
  field.bytes = at + 1;
  return field;
}

Result<MarkedText> convert(Heap& heap, const Field& field, const Value& value) {
  switch (field.conversion) {
    case 's':
    case 'r': {
      MarkedText text =
          field.conversion == 's' ? TRY(jinja_str(heap, value)) : TRY(jinja_repr(heap, value));
      if (field.precision < 0) return text;
      return text.part(0, code_point_offset(text.text(), static_cast<size_t>(field.precision)));
    }
    case 'd':
    case 'i':
    case 'x':
      if (!value.is_number()) break;
      if (value.is(Kind::kFloat) && !(std::fabs(value.floating) < 9e18)) break;
      {
        const int64_t number =
            value.is(Kind::kFloat) ? static_cast<int64_t>(value.floating) : value.as_int();
        return MarkedText(
            field.conversion == 'x' ? fmt::format("{:x}", number) : fmt::format("{}", number),
            false);
      }
    case 'f':
      if (!value.is_number()) break;
      return MarkedText(
          fmt::format("{:.{}f}", value.as_double(), field.precision < 0 ? 6 : field.precision),
          false);
    default:
      return jinja_error(fmt::format("unsupported format character '{}'", field.conversion));
  }
  return jinja_error(
      fmt::format("%{} format: a number is required, not {}", field.conversion, type_name(value)));
}

MarkedText padded(const Field& field, const MarkedText& text) {
  const auto count = static_cast<int64_t>(count_code_points(text.text()));
  if (count >= field.width) return text;
  const auto missing = static_cast<size_t>(field.width - count);
  const bool number = field.conversion != 's' && field.conversion != 'r';
  MarkedText result;
  if (field.left) {
    result.append(text);
    result.append(std::string(missing, ' '), false);
  } else if (field.zeros && number) {
    const size_t sign = text.text().starts_with('-') ? 1 : 0;
    result.append_part(text, 0, sign);
    result.append(std::string(missing, '0'), false);
    result.append_part(text, sign, text.size() - sign);
  } else {
    result.append(std::string(missing, ' '), false);
    result.append(text);
  }
  return result;
}

}  // namespace

Result<Value> jinja_format(Heap& heap, const MarkedText& format, const Value& value) {
  std::vector<Value> values = {value};
  const bool tuple = value.is(Kind::kList) && value.list->shape == Shape::kTuple;
  if (tuple) values = value.list->items;
  const std::string_view text = format.text();
  LimitedText out(std::min(heap.bytes_left(), kPromptBytesMax));
  size_t used = 0;
  for (size_t at = 0; at < text.size() && !out.overflowed();) {
    const size_t percent = std::min(text.find('%', at), text.size());
    out.append_part(format, at, percent - at);
    if (percent == text.size()) break;
    const Field field = TRY(parse_field(text.substr(percent)));
    at = percent + field.bytes;
    if (field.conversion == '%') {
      out.append("%", false);
      continue;
    }
    if (used == values.size()) return jinja_error("not enough arguments for format string");
    out.append(padded(field, TRY(convert(heap, field, values[used++]))));
  }
  const bool all_used = used == values.size() || (!tuple && value.is(Kind::kDict));
  if (!all_used) return jinja_error("not all arguments converted during string formatting");
  if (out.overflowed()) return Error{ErrorCode::kExhausted, "a formatted text is too long"};
  return heap.text(std::move(out.text()));
}

}  // namespace lockstep::jinja
