#include "chat/calls/json_scanner.h"

#include <fmt/core.h>

#include <cctype>

namespace lockstep {
namespace {

bool is_json_word_letter(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '-' || letter == '+' ||
         letter == '.';
}

void append_control(std::string& out, char control) {
  switch (control) {
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      out += fmt::format("\\u{:04x}", static_cast<unsigned char>(control));
  }
}

}  // namespace

size_t JsonScanner::push(std::string_view text, std::string& out) {
  size_t taken = 0;
  while (taken < text.size() && state_ == State::kMore && take(text[taken], out)) ++taken;
  if (state_ == State::kBroken) flush(out);
  return taken;
}

void JsonScanner::flush(std::string& out) {
  out += held_;
  held_.clear();
}

bool JsonScanner::take(char letter, std::string& out) {
  if (is_in_string_) {
    take_in_string(letter, out);
    return true;
  }
  const bool is_blank = std::string_view(" \t\r\n").find(letter) != std::string_view::npos;
  if (!held_.empty() && is_blank) {
    held_ += letter;
    return true;
  }
  if (!held_.empty()) {
    if (letter == open_.back()) held_.erase(0, 1);
    flush(out);
  }
  if (letter == ',' && !open_.empty()) {
    held_ += letter;
    return true;
  }
  const bool is_first = !has_begun_;
  has_begun_ = true;
  if (letter == '"' && (is_first || !open_.empty())) {
    is_in_string_ = true;
  } else if ((letter == '{' || letter == '[') && (is_first || !open_.empty())) {
    if (open_.size() == kDepthMax) {
      state_ = State::kBroken;
      return false;
    }
    open_ += letter == '{' ? '}' : ']';
  } else if (open_.empty() && !is_json_word_letter(letter)) {
    state_ = is_first ? State::kBroken : State::kComplete;
    return false;
  } else if (letter == '}' || letter == ']') {
    close(letter);
    if (state_ == State::kBroken) return false;
  }
  out += letter;
  return true;
}

void JsonScanner::take_in_string(char letter, std::string& out) {
  if (static_cast<unsigned char>(letter) < 0x20) {
    // The backslash before a line end is doubled: the line end gets its own escape.
    if (is_escaped_) out += '\\';
    is_escaped_ = false;
    return append_control(out, letter);
  }
  out += letter;
  if (is_escaped_) {
    is_escaped_ = false;
  } else if (letter == '\\') {
    is_escaped_ = true;
  } else if (letter == '"') {
    is_in_string_ = false;
    if (open_.empty()) state_ = State::kComplete;
  }
}

void JsonScanner::close(char bracket) {
  if (open_.back() != bracket) {
    state_ = State::kBroken;
    return;
  }
  open_.pop_back();
  if (open_.empty()) state_ = State::kComplete;
}

}  // namespace lockstep
