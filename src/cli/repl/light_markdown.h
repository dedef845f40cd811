// LightMarkdown: an answer's Markdown as terminal text while it arrives: headings and **strong**
// words bold, fences of code framed, everything else as it is; no line is broken or joined. The
// result does not depend on how the text is cut. Input must be harmless (harmless_text). Pure.
#pragma once

#include <string>
#include <string_view>

#include "cli/text/terminal_text.h"

namespace lockstep {

class LightMarkdown {
 public:
  explicit LightMarkdown(const TerminalManner& manner) : manner_(manner) {}

  std::string push(std::string_view text);
  std::string finish();  // the end of the answer; ends what is open

 private:
  void take(char c, std::string& out);
  void begin_line(std::string& out);
  void take_inline(char c, std::string& out);
  void take_star(std::string& out);
  void flush_stars(char next, std::string& out);
  void end_line(std::string& out);
  bool may_begin_block() const;
  void set_bold(bool is_bold, std::string& out);

  const TerminalManner manner_;
  std::string start_;  // of a line that may become a heading or a fence
  bool is_at_start_ = true;
  bool is_code_ = false;     // between fences
  std::string fence_;        // that opened it
  bool is_heading_ = false;  // this line
  bool is_bold_ = false;
  bool is_quoted_ = false;  // between `backquotes`
  bool is_after_space_ = false;
  int stars_ = 0;  // that have come and are not shown yet
};

}  // namespace lockstep
