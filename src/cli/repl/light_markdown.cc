#include "cli/repl/light_markdown.h"

#include <algorithm>
#include <utility>

#include "cli/text/code_fence.h"

namespace lockstep {
namespace {

size_t marks_of(std::string_view text, char mark) {
  return std::min(text.find_first_not_of(mark), text.size());
}

std::string_view without_indent(std::string_view line) {
  return line.substr(std::min(marks_of(line, ' '), line.size()));
}

constexpr size_t kHeadingMarksMax = 6;
constexpr size_t kHeadingIndentMax = 3;

}  // namespace

std::string LightMarkdown::push(std::string_view text) {
  std::string out;
  for (const char c : text) take(c, out);
  return out;
}

std::string LightMarkdown::finish() {
  std::string out;
  if (is_at_start_) begin_line(out);
  flush_stars(' ', out);
  set_bold(false, out);
  return out;
}

void LightMarkdown::take(char c, std::string& out) {
  if (is_at_start_) {
    if (c != '\n') {
      start_ += c;
      if (may_begin_block()) return;
      return begin_line(out);
    }
    begin_line(out);
    return end_line(out);
  }
  if (c == '\n') return end_line(out);
  take_inline(c, out);
}

// Whether the beginning of this line does not decide yet: indent, then marks of a heading or the
// whole line of a fence.
bool LightMarkdown::may_begin_block() const {
  const std::string_view text = without_indent(start_);
  if (start_.size() - text.size() > kFenceIndentMax) return false;
  if (text.empty()) return true;
  const char mark = text[0];
  if (mark == '`' || mark == '~') {
    return marks_of(text, mark) == text.size() || code_fence(start_).has_value();
  }
  if (mark != '#' || is_code_ || start_.size() - text.size() > kHeadingIndentMax) return false;
  const size_t marks = marks_of(text, '#');
  return marks == text.size() && marks <= kHeadingMarksMax;
}

// Decides on the line of which start_ is the beginning.
void LightMarkdown::begin_line(std::string& out) {
  is_at_start_ = false;
  const std::string line = std::exchange(start_, "");
  const std::string_view text = without_indent(line);
  const std::string rule = manner_.has_utf8 ? "──" : "--";
  const auto fence = code_fence(line);
  if (fence && !is_code_) {
    is_code_ = true;
    fence_ = fence->marks;
    const std::string name(fence->info);
    const std::string frame = name.empty() ? rule + rule : rule + " " + name + " " + rule;
    out += styled(manner_, TextStyle::kDim, frame);
    return;
  }
  if (fence && fence->closes(fence_)) {
    is_code_ = false;
    out += styled(manner_, TextStyle::kDim, rule + rule);
    return;
  }
  const size_t marks = marks_of(text, '#');
  const std::string_view rest = text.substr(marks);
  const bool is_title = marks > 0 && marks <= kHeadingMarksMax && rest.starts_with(' ') &&
                        line.size() - text.size() <= kHeadingIndentMax;
  if (!is_code_ && is_title) {
    is_heading_ = true;
    set_bold(true, out);
    for (const char c : without_indent(rest)) take_inline(c, out);
    return;
  }
  for (const char c : line) take_inline(c, out);
}

void LightMarkdown::take_inline(char c, std::string& out) {
  if (is_code_) {
    out += c;
    return;
  }
  if (c == '*' && !is_quoted_) return take_star(out);
  flush_stars(c, out);
  if (c == '`') is_quoted_ = !is_quoted_;
  is_after_space_ = c == ' ';
  out += c;
}

// Two of them end strong text unless a space is before them, and begin it unless one follows.
void LightMarkdown::take_star(std::string& out) {
  if (++stars_ < 2) return;
  if (is_heading_) {
    stars_ = 0;
  } else if (is_bold_) {
    stars_ = 0;
    if (is_after_space_) {
      out += "**";
    } else {
      set_bold(false, out);
    }
  } else if (stars_ > 2) {
    flush_stars('*', out);
    out += '*';
  }
}

// `next` follows the stars that have come and have not been shown.
void LightMarkdown::flush_stars(char next, std::string& out) {
  const int stars = std::exchange(stars_, 0);
  if (stars == 1) out += '*';
  if (stars < 2) return;
  if (next == ' ' || next == '\n') {
    out += "**";
  } else {
    set_bold(true, out);
  }
}

void LightMarkdown::end_line(std::string& out) {
  flush_stars('\n', out);
  is_quoted_ = is_heading_ = is_after_space_ = false;
  set_bold(false, out);  // a mark without its partner makes no more than its line bold
  out += '\n';
  is_at_start_ = true;
}

void LightMarkdown::set_bold(bool is_bold, std::string& out) {
  if (is_bold == is_bold_) return;
  is_bold_ = is_bold;
  if (manner_.has_colour) out += is_bold ? "\x1b[1m" : "\x1b[0m";
}

}  // namespace lockstep
