#include "chat/jinja_syntax/jinja_lexer.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/hex.h"
#include "base/letters.h"
#include "base/utf8.h"
#include "chat/text/characters.h"

namespace lockstep::jinja {
namespace {

bool is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}
bool is_name_part(char c) {
  return is_name_start(c) || is_digit(c);
}

// Newlines become \n, and one at the end of the template is dropped.
std::string normalised_newlines(std::string_view source) {
  std::string result;
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      result += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      result += source[i];
    }
  }
  if (result.ends_with('\n')) result.pop_back();
  return result;
}

size_t space_bytes(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    const Utf8Character character = first_utf8_character(text.substr(at));
    if (!is_python_space(character.code_point)) break;
    at += character.bytes;
  }
  return at;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(normalised_newlines(source)) {}

  Result<std::vector<Token>> run() {
    while (at_ < source_.size()) {
      const size_t tag = next_tag(at_);
      if (tag == std::string::npos) {
        add_text(rest());
        at_ = source_.size();
        break;
      }
      TRY(lex_tag(tag));
    }
    add(TokenKind::kEnd, "");
    return std::move(tokens_);
  }

 private:
  std::string_view rest() const { return std::string_view(source_).substr(at_); }

  bool starts_with(std::string_view wanted) const { return rest().starts_with(wanted); }

  size_t next_tag(size_t from) const {
    for (size_t at = source_.find('{', from); at != std::string::npos;
         at = source_.find('{', at + 1)) {
      const char next = at + 1 < source_.size() ? source_[at + 1] : '\0';
      if (next == '{' || next == '%' || next == '#') return at;
    }
    return std::string::npos;
  }

  void add(TokenKind kind, std::string text) { tokens_.push_back({kind, line_, std::move(text)}); }

  void add_text(std::string_view text) {
    if (!text.empty()) add(TokenKind::kText, std::string(text));
    count_lines(text);
  }

  void count_lines(std::string_view text) {
    line_ += static_cast<uint32_t>(std::count(text.begin(), text.end(), '\n'));
  }

  void skip(size_t bytes) {
    count_lines(rest().substr(0, bytes));
    at_ += bytes;
  }

  // The text before a tag at `tag`, then the tag itself.
  Status lex_tag(size_t tag) {
    std::string_view text = std::string_view(source_).substr(at_, tag - at_);
    const char kind = source_[tag + 1];
    const char sign = tag + 2 < source_.size() ? source_[tag + 2] : '\0';
    const size_t whole = text.size();
    if (sign == '-') {
      text = text.substr(0, stripped_bytes(text));
    } else if (sign != '+' && kind != '{') {
      text = without_indentation(text);
    }
    const uint32_t lines_cut = static_cast<uint32_t>(
        std::count(source_.begin() + static_cast<ptrdiff_t>(at_ + text.size()),
                   source_.begin() + static_cast<ptrdiff_t>(at_ + whole), '\n'));
    add_text(text);
    line_ += lines_cut;
    at_ = tag + 2 + (sign == '-' || sign == '+' ? 1 : 0);
    if (kind == '#') return lex_comment();
    if (kind == '%' && is_raw_tag()) return lex_raw();
    add(kind == '{' ? TokenKind::kPrintBegin : TokenKind::kBlockBegin, "");
    return lex_expression(kind == '{' ? "}}" : "%}");
  }

  static size_t stripped_bytes(std::string_view text) {
    return stripped(MarkedText(std::string(text), false), Sides::kRight).size();
  }

  // lstrip_blocks: drops white space between the start of a line and a tag.
  std::string_view without_indentation(std::string_view text) const {
    const size_t newline = text.rfind('\n');
    const bool at_line_start = at_ == 0 || source_[at_ - 1] == '\n';
    if (newline == std::string_view::npos && !at_line_start) return text;
    const size_t start = newline == std::string_view::npos ? 0 : newline + 1;
    const std::string_view indentation = text.substr(start);
    return space_bytes(indentation) == indentation.size() ? text.substr(0, start) : text;
  }

  // After a tag's end: "-" removes all white space, trim_blocks one newline.
  void after_tag(char sign, bool trims) {
    if (sign == '-') {
      skip(space_bytes(rest()));
    } else if (sign != '+' && trims && starts_with("\n")) {
      skip(1);
    }
  }

  Status lex_comment() {
    const size_t end = source_.find("#}", at_);
    if (end == std::string::npos) return template_syntax_error(line_, "the comment does not end");
    const char sign = end > at_ ? source_[end - 1] : '\0';
    skip(end + 2 - at_);
    after_tag(sign, true);
    return Ok{};
  }

  bool is_raw_tag() const {
    std::string_view text = rest();
    text.remove_prefix(space_bytes(text));
    if (!text.starts_with("raw")) return false;
    text.remove_prefix(3);
    text.remove_prefix(space_bytes(text));
    return text.starts_with("%}") || text.starts_with("-%}");
  }

  Status lex_raw() {
    const size_t begin_end = source_.find("%}", at_);
    const char begin_sign = source_[begin_end - 1];
    skip(begin_end + 2 - at_);
    after_tag(begin_sign == '-' ? '-' : '\0', false);
    for (size_t tag = source_.find("{%", at_); tag != std::string::npos;
         tag = source_.find("{%", tag + 1)) {
      std::string_view inner = std::string_view(source_).substr(tag + 2);
      const char sign = inner.empty() ? '\0' : inner[0];
      if (sign == '-' || sign == '+') inner.remove_prefix(1);
      inner.remove_prefix(space_bytes(inner));
      if (!inner.starts_with("endraw")) continue;
      inner.remove_prefix(6);
      inner.remove_prefix(space_bytes(inner));
      const char end_sign = inner.empty() ? '\0' : inner[0];
      if (end_sign == '-' || end_sign == '+') inner.remove_prefix(1);
      if (!inner.starts_with("%}")) continue;
      std::string_view text = std::string_view(source_).substr(at_, tag - at_);
      if (sign == '-') text = text.substr(0, stripped_bytes(text));
      if (sign != '-' && sign != '+') text = without_indentation(text);
      if (!text.empty()) add(TokenKind::kText, std::string(text));
      skip(source_.size() - inner.size() + 2 - at_);
      after_tag(end_sign, true);
      return Ok{};
    }
    return template_syntax_error(line_, "{% raw %} has no {% endraw %}");
  }

  Status lex_expression(std::string_view end) {
    std::string brackets;
    const bool block = end == "%}";
    while (at_ < source_.size()) {
      const char c = source_[at_];
      if (const size_t spaces = space_bytes(rest()); spaces > 0 && c != '\0') {
        skip(spaces);
        continue;
      }
      if (brackets.empty()) {
        const bool signed_end =
            (c == '-' || (c == '+' && block)) && rest().substr(1).starts_with(end);
        if (signed_end || starts_with(end)) {
          add(block ? TokenKind::kBlockEnd : TokenKind::kPrintEnd, "");
          skip(end.size() + (signed_end ? 1 : 0));
          after_tag(signed_end ? c : '\0', block);
          return Ok{};
        }
      }
      if (is_digit(c)) {
        TRY(lex_number());
      } else if (is_name_start(c)) {
        size_t bytes = 1;
        while (at_ + bytes < source_.size() && is_name_part(source_[at_ + bytes])) ++bytes;
        add(TokenKind::kName, std::string(rest().substr(0, bytes)));
        at_ += bytes;
      } else if (c == '\'' || c == '"') {
        TRY(lex_string());
      } else {
        TRY(lex_operator(brackets));
      }
    }
    return template_syntax_error(line_, "a tag does not end");
  }

  Status lex_operator(std::string& brackets) {
    static constexpr std::array<std::string_view, 26> kOperators = {
        "**", "//", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
        "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"};
    for (const std::string_view candidate : kOperators) {
      if (!starts_with(candidate)) continue;
      const char c = candidate[0];
      if (c == '(' || c == '[' || c == '{') brackets += c == '(' ? ')' : c == '[' ? ']' : '}';
      if (c == ')' || c == ']' || c == '}') {
        if (brackets.empty() || brackets.back() != c) {
          return template_syntax_error(line_, fmt::format("unexpected '{}'", c));
        }
        brackets.pop_back();
      }
      add(TokenKind::kOperator, std::string(candidate));
      at_ += candidate.size();
      return Ok{};
    }
    const size_t bytes = first_utf8_character(rest()).bytes;
    return template_syntax_error(line_, fmt::format("unexpected '{}'", rest().substr(0, bytes)));
  }

  size_t digits(size_t from) const {
    size_t end = from;
    while (end < source_.size() &&
           (is_digit(source_[end]) || (source_[end] == '_' && end > from))) {
      ++end;
    }
    return end;
  }

  Status lex_number() {
    size_t end = digits(at_);
    bool is_float = false;
    const bool after_dot = at_ > 0 && source_[at_ - 1] == '.';  // a.0.1 has no float
    const auto at = [this](size_t i) { return i < source_.size() ? source_[i] : '\0'; };
    if (!after_dot && at(end) == '.' && is_digit(at(end + 1))) {
      is_float = true;
      end = digits(end + 1);
    }
    if (!after_dot && (at(end) == 'e' || at(end) == 'E')) {
      const size_t sign = at(end + 1) == '+' || at(end + 1) == '-' ? 1 : 0;
      if (is_digit(at(end + 1 + sign))) {
        is_float = true;
        end = digits(end + 1 + sign);
      }
    }
    std::string text(source_, at_, end - at_);
    text.erase(std::remove(text.begin(), text.end(), '_'), text.end());
    add(is_float ? TokenKind::kFloat : TokenKind::kInt, std::move(text));
    at_ = end;
    return Ok{};
  }

  Status lex_string() {
    const char quote = source_[at_];
    const uint32_t line = line_;
    std::string text;
    size_t at = at_ + 1;
    while (at < source_.size() && source_[at] != quote) {
      if (source_[at] != '\\') {
        text += source_[at++];
        continue;
      }
      if (at + 1 >= source_.size()) break;
      at += resolve_escape(std::string_view(source_).substr(at), text);
    }
    if (at >= source_.size()) return template_syntax_error(line, "a string does not end");
    add(TokenKind::kString, std::move(text));
    skip(at + 1 - at_);
    return Ok{};
  }

  // Appends the character of the escape at the start of `escape`, a backslash; returns the bytes
  // used.
  static size_t resolve_escape(std::string_view escape, std::string& out) {
    static constexpr std::string_view kFrom = "ntrabfv\\'\"";
    static constexpr std::string_view kTo = "\n\t\r\a\b\f\v\\'\"";
    const char c = escape[1];
    if (const size_t simple = kFrom.find(c); simple != std::string_view::npos) {
      out += kTo[simple];
      return 2;
    }
    if (c == '\n') return 2;
    const bool octal = c >= '0' && c <= '7';
    const size_t wanted = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    const size_t first = octal ? 1 : 2;
    const size_t longest = octal ? 3 : wanted;
    uint32_t code_point = 0;
    size_t used = 0;
    while (used < longest && first + used < escape.size()) {
      const int digit = hex_digit(escape[first + used]);
      if (digit < 0 || (octal && digit > 7)) break;
      code_point = code_point * (octal ? 8 : 16) + static_cast<uint32_t>(digit);
      ++used;
    }
    if (used == 0 || (!octal && used < wanted)) {  // not an escape: keeps the backslash
      out += '\\';
      return 1;
    }
    const bool valid = code_point <= 0x10FFFF && (code_point < 0xD800 || code_point > 0xDFFF);
    append_code_point(out, valid ? code_point : 0xFFFD);
    return first + used;
  }

  const std::string source_;
  size_t at_ = 0;
  uint32_t line_ = 1;
  std::vector<Token> tokens_;
};

}  // namespace

Error template_syntax_error(uint32_t line, std::string_view what) {
  return {ErrorCode::kCorrupt, fmt::format("line {} of the chat template: {}", line, what)};
}

Result<std::vector<Token>> lex_template(std::string_view source) {
  if (source.size() > kTemplateBytesMax) {
    return Error{ErrorCode::kCorrupt, fmt::format("the chat template has {} bytes, more than {}",
                                                  source.size(), kTemplateBytesMax)};
  }
  if (!is_valid_utf8(source)) {
    return Error{ErrorCode::kCorrupt, "the chat template is not valid UTF-8"};
  }
  return Lexer(source).run();
}

}  // namespace lockstep::jinja
