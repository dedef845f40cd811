// Text for a terminal: how much the terminal can show, and text of models and other machines made
// harmless before it gets there. Pure functions; any thread.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace lockstep {

// The conventions of no-color.org and bixense.com/clicolors, and ACCESSIBLE for screen readers.
struct TerminalManner {
  bool is_terminal = false;
  bool has_colour = false;  // and bold
  bool has_utf8 = false;
  // A line or the screen may be written again in place; otherwise lines are only added, and a long
  // wait says so from time to time.
  bool may_repaint = false;
};

// `variable` returns a variable of the environment, or null.
using EnvironmentLookup = std::function<const char*(const char*)>;
TerminalManner terminal_manner(bool is_terminal, const EnvironmentLookup& variable);
// By the process's own environment.
TerminalManner stdout_manner();
TerminalManner stderr_manner();

enum class TextStyle { kDim, kBold, kReverse };
// The text in a style, if the terminal has any.
std::string styled(const TerminalManner& manner, TextStyle style, std::string_view text);

// Replaces everything in UTF-8 text that could command a terminal or change how its text is read:
// control characters other than line ends and tabs become visible pictures of themselves (ESC is
// U+241B), those of C1, of bidirectional order and of tags U+FFFD; invalid bytes too. Line ends
// with CR lose it.
std::string harmless_text(std::string_view text);
// The same in one line: line ends and tabs become spaces.
std::string harmless_line(std::string_view text);

// Columns that valid text takes on a terminal: 0 for combining characters, 2 for wide ones (East
// Asian Width of Unicode's UAX #11, the ranges that terminals agree on).
size_t columns_of(std::string_view text);
// The longest beginning of the text that takes at most `columns`.
std::string_view first_columns(std::string_view text, size_t columns);
// Exactly `columns`: cut, with a sign that it was ("…" or "~"), or filled with spaces.
std::string fit_columns(std::string_view text, size_t columns, bool has_utf8);

}  // namespace lockstep
