// LineEditor: reads what a user types at a prompt of the terminal: libedit's editing with history
// and search (Ctrl-R), completion, a paste as one text, $EDITOR. Terminals that cannot repaint a
// line, and screen readers (ACCESSIBLE), get the system's own line input instead. One of them at a
// time, on the main thread. Source of the calls: editline(3) and editrc(5).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace lockstep {

struct Typed {
  enum class Kind {
    kLine,
    kInterrupted,  // Ctrl-C; `text` is what stood in the line
    kEnd,          // Ctrl-D in an empty line, or the end of stdin
  };
  Kind kind = Kind::kLine;
  std::string text;
};

class LineEditor {
 public:
  static constexpr size_t kPasteBytesMax = 256 << 10;  // of one paste; the rest is dropped

  // Takes the line up to the cursor; returns what may replace its last word, and whether that is a
  // path.
  using Completer = std::function<std::vector<std::string>(std::string_view line)>;

  // `may_repaint`: the terminal can. Both streams must be terminals then.
  LineEditor(bool may_repaint, Completer completer);
  ~LineEditor();
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  Typed read(std::string_view prompt);
  // For Ctrl-R and the arrow keys.
  void remember(std::string_view text);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;  // null: plain lines
};

// Opens $VISUAL, $EDITOR or vi on the text; returns what it then is, without the last line end.
// Waits as long as the user edits.
Result<std::string> edit_in_editor(std::string_view text);

}  // namespace lockstep
