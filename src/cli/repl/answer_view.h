// AnswerView: shows an answer while it is made: the text on stdout, on a terminal harmless and with
// light Markdown; reasoning, waits and events on stderr. One thread.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "cli/repl/light_markdown.h"
#include "cli/talk/answerer.h"
#include "cli/text/terminal_text.h"
#include "cli/text/wait_line.h"

namespace lockstep {

struct AnswerViewOptions {
  TerminalManner out;
  TerminalManner err;
  bool is_plain = false;   // no Markdown
  bool is_silent = false;  // the caller prints the whole answer
};

class AnswerView : public TalkEvents {
 public:
  using Clock = std::chrono::steady_clock;

  explicit AnswerView(const AnswerViewOptions& options)
      : options_(options), markdown_(options.out), progress_(options.err) {}

  void on_reasoning(std::string_view text) override;
  void on_content(std::string_view text) override;
  void on_wait(std::string_view text) override;
  void on_note(std::string_view text) override;

  // The end: the cursor stands at the beginning of a line. `is_answer`: of an answer, which ends
  // with a line end in a pipe too; false: of a refusal, which leaves stdout empty.
  void finish(bool is_answer);

 private:
  void end_reasoning();
  void print(std::string_view text);
  void leave_line();  // of a terminal, before a line on stderr

  const AnswerViewOptions options_;
  LightMarkdown markdown_;
  WaitLine progress_;
  std::optional<Clock::time_point> thinks_since_;
  int64_t thoughts_ = 0;  // pieces, about a token each
  bool has_carriage_return_ = false;
  bool is_inside_line_ = false;
  bool has_content_ = false;
};

}  // namespace lockstep
