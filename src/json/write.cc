#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <iterator>

#include "base/utf8.h"
#include "json/json.h"

namespace lockstep {
namespace {

// fmt writes exponents in the same range as Python's repr (below 1e-4, from 1e16), but 2.0 as 2.
template <class Float>
void append_number(std::string& out, Float value) {
  const size_t begin = out.size();
  fmt::format_to(std::back_inserter(out), "{}", value);
  if (out.find_first_of(".e", begin) == std::string::npos) out += ".0";
}

void append_double(std::string& out, double value) {
  if (std::isfinite(value)) {
    append_number(out, value);
  } else {
    out += "null";
  }
}

void append_escape(std::string& out, char c) {
  switch (c) {
    case '"':
      out += "\\\"";
      break;
    case '\\':
      out += "\\\\";
      break;
    case '\b':
      out += "\\b";
      break;
    case '\f':
      out += "\\f";
      break;
    case '\n':
      out += "\\n";
      break;
    case '\r':
      out += "\\r";
      break;
    case '\t':
      out += "\\t";
      break;
    default:
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned>(c));
      break;
  }
}

bool needs_escape(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == '"' || c == '\\';
}

// Depth is bounded: values come from parse_json or are built by our own code.
void append_value(std::string& out, const Json& value) {
  switch (value.kind()) {
    case boost::json::kind::null:
      out += "null";
      break;
    case boost::json::kind::bool_:
      out += value.get_bool() ? "true" : "false";
      break;
    case boost::json::kind::int64:
      out += std::to_string(value.get_int64());
      break;
    case boost::json::kind::uint64:
      out += std::to_string(value.get_uint64());
      break;
    case boost::json::kind::double_:
      append_double(out, value.get_double());
      break;
    case boost::json::kind::string: {
      const auto& text = value.get_string();
      append_json_string(out, {text.data(), text.size()});
      break;
    }
    case boost::json::kind::array: {
      char separator = '[';
      for (const Json& element : value.get_array()) {
        out += std::exchange(separator, ',');
        append_value(out, element);
      }
      out += value.get_array().empty() ? "[]" : "]";
      break;
    }
    case boost::json::kind::object: {
      char separator = '{';
      for (const auto& member : value.get_object()) {
        out += std::exchange(separator, ',');
        append_json_string(out, {member.key().data(), member.key().size()});
        out += ':';
        append_value(out, member.value());
      }
      out += value.get_object().empty() ? "{}" : "}";
      break;
    }
  }
}

}  // namespace

std::string dump_json(const Json& value) {
  std::string out;
  append_value(out, value);
  return out;
}

void append_json_string(std::string& out, std::string_view text) {
  if (!is_valid_utf8(text)) return append_json_string(out, replace_invalid_utf8(text));
  out += '"';
  while (!text.empty()) {
    size_t plain = 0;
    while (plain < text.size() && !needs_escape(text[plain])) ++plain;
    out += text.substr(0, plain);
    if (plain < text.size()) append_escape(out, text[plain++]);
    text.remove_prefix(plain);
  }
  out += '"';
}

std::string json_string(std::string_view text) {
  std::string literal;
  append_json_string(literal, text);
  return literal;
}

void append_json_float(std::string& out, float value) {
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  const size_t begin = out.size();
  append_number(out, value);
  // Most readers parse to a double and then narrow, which rounds twice. If the shortest text does
  // not survive that, the shortest text for the double does: it is within a double's rounding of
  // the float itself.
  const auto twice_rounded = static_cast<float>(std::strtod(out.c_str() + begin, nullptr));
  if (twice_rounded == value) return;
  out.resize(begin);
  append_number(out, static_cast<double>(value));
}

}  // namespace lockstep
