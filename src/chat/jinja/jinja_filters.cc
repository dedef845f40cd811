// Filters of one value; those of sequences are in jinja_sequence_filters.cc.
#include "chat/jinja/jinja_filters.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <optional>

#include "base/double_chars.h"
#include "base/utf8.h"
#include "chat/jinja/jinja_operators.h"
#include "chat/jinja/jinja_print.h"
#include "chat/jinja/jinja_text.h"
#include "chat/text/characters.h"

namespace lockstep::jinja {
namespace {

using FilterFunction = Result<Value> (*)(Heap&, const Value& subject, const Arguments&);

struct NamedFilter {
  std::string_view name;
  FilterFunction filter;
};

template <TextMethod* kMethod>
Result<Value> on_text(Heap& heap, const Value& subject, const Arguments& arguments) {
  return kMethod(heap, TRY(as_text(heap, subject)), arguments);
}

Result<Value> to_text(Heap& heap, const Value& subject, const Arguments&) {
  return as_text(heap, subject);
}

Result<Value> safe(Heap& heap, const Value& subject, const Arguments&) {
  Value text = TRY(as_text(heap, subject));
  text.is_markup = true;
  return text;
}

// Not str.title: a word begins after white space or one of -({[<, and "don't" becomes "Don't".
Result<Value> title(Heap& heap, const Value& subject, const Arguments&) {
  const Value text = TRY(as_text(heap, subject));
  MarkedText result;
  bool is_first = true;
  for (size_t at = 0; at < text.text->size();) {
    const auto character = first_utf8_character(std::string_view(text.as_string()).substr(at));
    const MarkedText part = text.text->part(at, character.bytes);
    const uint32_t c = character.code_point;
    const bool separates =
        is_python_space(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<';
    result.append(with_case(part, is_first ? LetterCase::kUpper : LetterCase::kLower));
    is_first = separates;
    at += character.bytes;
  }
  return heap.text(std::move(result));
}

Result<Value> replace(Heap& heap, const Value& subject, const Arguments& arguments) {
  Arguments texts;
  texts.positional.push_back(TRY(as_text(heap, *TRY(arguments.need(0, "old")))));
  texts.positional.push_back(TRY(as_text(heap, *TRY(arguments.need(1, "new")))));
  const Value* count = arguments.find(2, "count");
  if (count && !count->is(Kind::kNone)) texts.positional.push_back(*count);
  return text_replace(heap, TRY(as_text(heap, subject)), texts);
}

Result<Value> otherwise(Heap& heap, const Value& subject, const Arguments& arguments) {
  const bool replaces =
      subject.is(Kind::kUndefined) || (arguments.flag(1, "boolean", false) && !is_true(subject));
  if (!replaces) return subject;
  const Value* value = arguments.find(0, "default_value");
  return value ? *value : heap.text("");
}

Result<Value> length(Heap&, const Value& subject, const Arguments&) {
  return Value::of(TRY(jinja_length(subject)));
}

Result<Value> absolute(Heap&, const Value& subject, const Arguments&) {
  if (!subject.is_number()) {
    return jinja_error(fmt::format("bad operand type for abs(): '{}'", type_name(subject)));
  }
  if (subject.is(Kind::kFloat)) return Value::of(std::fabs(subject.floating));
  return subject.as_int() < 0 ? jinja_negate(subject) : Value::of(subject.as_int());
}

// "12", " -3 ", "1_000" as int() reads them.
std::optional<int64_t> parse_int(std::string_view text) {
  std::string digits;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool between = i > 0 && i + 1 < text.size() && text[i - 1] != '_';
    if (text[i] == '_' && between) continue;
    digits += text[i];
  }
  std::string_view number = digits;
  if (number.starts_with('+') && number.size() > 1 && number[1] != '-') number.remove_prefix(1);
  int64_t value = 0;
  const char* end = number.data() + number.size();
  const auto parsed = std::from_chars(number.data(), end, value);
  if (parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  return value;
}

std::optional<double> parse_float(std::string_view text) {
  std::string_view number = text;
  if (number.starts_with('+') && number.size() > 1 && number[1] != '-') number.remove_prefix(1);
  double value = 0;
  const char* end = number.data() + number.size();
  const auto parsed = double_from_chars(number.data(), end, value);
  if (parsed.ptr != end || number.empty()) return std::nullopt;
  if (parsed.ec == std::errc::result_out_of_range) {
    const bool tiny =
        number.find("e-") != std::string_view::npos || number.find("E-") != std::string_view::npos;
    value = tiny ? 0.0 : HUGE_VAL;
    return number.starts_with('-') ? -value : value;
  }
  if (parsed.ec != std::errc()) return std::nullopt;
  // from_chars accepts nan(...), Python does not.
  return number.find('(') == std::string_view::npos ? std::optional(value) : std::nullopt;
}

std::string trimmed(const Value& text) {
  return stripped(*text.text, Sides::kBoth).text();
}

std::optional<double> number_of(const Value& value) {
  if (value.is_number()) return value.as_double();
  return value.is(Kind::kText) ? parse_float(trimmed(value)) : std::nullopt;
}

Result<Value> to_int(Heap&, const Value& subject, const Arguments& arguments) {
  if (subject.is(Kind::kUndefined)) return jinja_error(subject.as_string());
  if (subject.is(Kind::kInt) || subject.is(Kind::kBool)) {
    return Value::of(subject.as_int());
  }
  if (subject.is(Kind::kText)) {
    if (const auto value = parse_int(trimmed(subject))) return Value::of(*value);
  }
  const auto value = number_of(subject);
  if (value && std::fabs(*value) < 9.2e18) return Value::of(static_cast<int64_t>(*value));
  const Value* fallback = arguments.find(0, "default");
  return fallback ? *fallback : Value::of(int64_t{0});
}

Result<Value> to_float(Heap&, const Value& subject, const Arguments& arguments) {
  if (subject.is(Kind::kUndefined)) return jinja_error(subject.as_string());
  if (const auto value = number_of(subject)) return Value::of(*value);
  const Value* fallback = arguments.find(0, "default");
  return fallback ? *fallback : Value::of(0.0);
}

Result<Value> rounded(Heap&, const Value& subject, const Arguments& arguments) {
  if (!subject.is_number()) return jinja_error("round needs a number");
  const int64_t precision = TRY(arguments.integer(0, "precision", 0));
  const Value* method = arguments.find(1, "method");
  const std::string name = method && method->is(Kind::kText) ? method->as_string() : "common";
  const double scale = std::pow(10.0, static_cast<double>(std::clamp<int64_t>(precision, -15, 15)));
  const double scaled = subject.as_double() * scale;
  if (name == "ceil") return Value::of(std::ceil(scaled) / scale);
  if (name == "floor") return Value::of(std::floor(scaled) / scale);
  if (!subject.is(Kind::kFloat)) return Value::of(subject.as_int());
  return Value::of(std::nearbyint(scaled) / scale);  // halves to even, as Python
}

Result<Value> indent(Heap& heap, const Value& subject, const Arguments& arguments) {
  const Value* width = arguments.find(0, "width");
  MarkedText indentation(std::string(4, ' '), false);
  if (width && width->is(Kind::kText)) {
    indentation = *width->text;
  } else if (width) {
    const int64_t spaces = TRY(arguments.integer(0, "width", 4));
    if (spaces > 1000) return jinja_error("indent is wider than 1000");
    indentation =
        MarkedText(std::string(static_cast<size_t>(std::max<int64_t>(spaces, 0)), ' '), false);
  }
  const bool first = arguments.flag(1, "first", false);
  const bool blank = arguments.flag(2, "blank", false);
  const Value text = TRY(as_text(heap, subject));
  MarkedText with_end = *text.text;
  with_end.append("\n", false);
  const Value lines = TRY(text_split_lines(heap, heap.text(std::move(with_end)), {}));
  LimitedText out(std::min(heap.bytes_left(), kPromptBytesMax));
  for (size_t i = 0; i < lines.list->items.size(); ++i) {
    const MarkedText& line = *lines.list->items[i].text;
    if (i > 0) out.append("\n", false);
    if (i == 0 ? first : blank || !line.empty()) out.append(indentation);
    out.append(line);
  }
  if (out.overflowed()) return Error{ErrorCode::kExhausted, "an indented text is too long"};
  return heap.text(std::move(out.text()));
}

Result<Value> to_json(Heap& heap, const Value& subject, const Arguments& arguments) {
  DumpsOptions options;
  options.ensure_ascii = arguments.flag(0, "ensure_ascii", false);
  const Value* width = arguments.find(1, "indent");
  if (width && width->is(Kind::kText)) {
    options.indent = width->as_string();
  } else if (width && !width->is(Kind::kNone)) {
    const int64_t spaces = TRY(arguments.integer(1, "indent", 0));
    if (spaces > 100) return jinja_error("tojson indents by more than 100");
    options.indent = std::string(static_cast<size_t>(std::max<int64_t>(spaces, 0)), ' ');
  }
  const Value* separators = arguments.find(2, "separators");
  if (separators && !separators->is(Kind::kNone)) {
    const auto items = TRY(jinja_items(heap, *separators));
    if (items.size() != 2 || !items[0].is(Kind::kText) || !items[1].is(Kind::kText)) {
      return jinja_error("separators must be two texts");
    }
    options.item_separator = items[0].as_string();
    options.key_separator = items[1].as_string();
  }
  options.sort_keys = arguments.flag(3, "sort_keys", false);
  return heap.text(TRY(jinja_dumps(heap, subject, options)));
}

Result<Value> from_json(Heap& heap, const Value& subject, const Arguments&) {
  if (subject.is(Kind::kUndefined)) return jinja_error(subject.as_string());
  if (!subject.is(Kind::kText)) return jinja_error("from_json needs a text");
  const Json json = TRY(parse_untrusted_json(subject.as_string()));
  return from_json_value(heap, json, subject.text->has_input());
}

constexpr NamedFilter kFilters[] = {
    {"abs", absolute},
    {"attr", filter_attr},
    {"batch", filter_batch},
    {"capitalize", on_text<text_capitalize>},
    {"center", filter_center},
    {"count", length},
    {"d", otherwise},
    {"default", otherwise},
    {"dictsort", filter_dictsort},
    {"e", filter_escape},
    {"escape", filter_escape},
    {"first", filter_first},
    {"float", to_float},
    {"format", filter_format},
    {"from_json", from_json},
    {"groupby", filter_groupby},
    {"indent", indent},
    {"int", to_int},
    {"items", filter_items},
    {"join", filter_join},
    {"last", filter_last},
    {"length", length},
    {"list", filter_list},
    {"lower", on_text<text_lower>},
    {"map", filter_map},
    {"max", filter_max},
    {"min", filter_min},
    {"reject", filter_reject},
    {"rejectattr", filter_rejectattr},
    {"replace", replace},
    {"reverse", filter_reverse},
    {"round", rounded},
    {"safe", safe},
    {"select", filter_select},
    {"selectattr", filter_selectattr},
    {"slice", filter_slice},
    {"sort", filter_sort},
    {"string", to_text},
    {"sum", filter_sum},
    {"title", title},
    {"tojson", to_json},
    {"trim", on_text<text_strip>},
    {"truncate", filter_truncate},
    {"unique", filter_unique},
    {"upper", on_text<text_upper>},
    {"wordcount", filter_wordcount},
};

const NamedFilter* find_filter(std::string_view name) {
  const auto* entry =
      std::find_if(std::begin(kFilters), std::end(kFilters),
                   [name](const NamedFilter& candidate) { return candidate.name == name; });
  return entry == std::end(kFilters) ? nullptr : entry;
}

}  // namespace

Result<Value> as_text(Heap& heap, const Value& value) {
  if (value.is(Kind::kText)) return value;
  return heap.text(TRY(jinja_str(heap, value)));
}

bool has_filter(std::string_view name) {
  return find_filter(name) != nullptr;
}

Result<Value> call_filter(Heap& heap, std::string_view name, const Value& subject,
                          const Arguments& arguments) {
  const NamedFilter* entry = find_filter(name);
  if (!entry) return jinja_error(fmt::format("there is no filter named '{}'", name));
  auto result = entry->filter(heap, subject, arguments);
  TRY(heap.check());
  return result;
}

}  // namespace lockstep::jinja
