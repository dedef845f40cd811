#include "cli/repl/answer_view.h"

#include <fmt/core.h>

#include <cstdio>
#include <utility>

#include "cli/talk/talk_text.h"
#include "cli/text/output.h"

namespace lockstep {

void AnswerView::on_reasoning(std::string_view text) {
  if (options_.is_silent) return;
  const auto now = Clock::now();
  if (!thinks_since_) thinks_since_ = now;
  ++thoughts_;
  if (!options_.err.is_terminal) {
    fmt::print(stderr, "{}", text);
    std::fflush(stderr);
    return;
  }
  const double seconds = std::chrono::duration<double>(now - *thinks_since_).count();
  progress_.show(thinking_text(thoughts_, seconds, false), now);
}

// Reasoning is one line on a terminal; elsewhere the answer is set apart by an empty line.
void AnswerView::end_reasoning() {
  if (!thinks_since_) return;
  const double seconds = std::chrono::duration<double>(Clock::now() - *thinks_since_).count();
  thinks_since_.reset();
  if (!options_.err.is_terminal) {
    fmt::print(stderr, "\n\n");
    return;
  }
  print_dim(options_.err, thinking_text(std::exchange(thoughts_, 0), seconds, true));
}

void AnswerView::on_content(std::string_view text) {
  if (options_.is_silent) return;
  progress_.clear();
  end_reasoning();
  has_content_ = true;
  if (!options_.out.is_terminal) return print(text);
  std::string whole = std::exchange(has_carriage_return_, false) ? "\r" : "";
  whole += text;
  if (whole.ends_with('\r')) {  // the line end may follow
    has_carriage_return_ = true;
    whole.pop_back();
  }
  const std::string harmless = harmless_text(whole);
  print(options_.is_plain ? harmless : markdown_.push(harmless));
}

void AnswerView::on_wait(std::string_view text) {
  if (options_.is_silent || !options_.err.is_terminal) return;
  leave_line();
  progress_.show(text, Clock::now());
}

void AnswerView::on_note(std::string_view text) {
  if (options_.is_silent || !options_.err.is_terminal) return;
  leave_line();
  progress_.clear();
  print_dim(options_.err, text);
}

void AnswerView::finish(bool is_answer) {
  progress_.clear();
  if (options_.is_silent) return;
  end_reasoning();
  if (options_.out.is_terminal) {
    if (has_carriage_return_) print(harmless_text("\r"));
    if (!options_.is_plain) print(markdown_.finish());
  }
  const bool ends_answer = is_answer && (!has_content_ || !options_.out.is_terminal);
  if (is_inside_line_ || ends_answer) print("\n");
}

void AnswerView::print(std::string_view text) {
  if (text.empty()) return;
  fmt::print(stdout, "{}", text);
  std::fflush(stdout);
  is_inside_line_ = text.back() != '\n';
}

void AnswerView::leave_line() {
  if (options_.out.is_terminal && std::exchange(is_inside_line_, false)) print_line("");
}

}  // namespace lockstep
