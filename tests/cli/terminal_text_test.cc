#include "cli/text/terminal_text.h"

#include <doctest/doctest.h>

#include <map>
#include <string>

namespace lockstep {
namespace {

TerminalManner manner_with(bool is_terminal, const std::map<std::string, std::string>& variables) {
  return terminal_manner(is_terminal, [&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST_CASE("a terminal gets colours unless the environment says otherwise") {
  CHECK(manner_with(true, {{"TERM", "xterm"}}).has_colour);
  CHECK(manner_with(true, {{"TERM", "xterm"}}).may_repaint);
  CHECK_FALSE(manner_with(true, {{"TERM", "dumb"}}).may_repaint);
  CHECK_FALSE(manner_with(true, {{"TERM", "dumb"}}).has_colour);
  CHECK_FALSE(manner_with(true, {}).may_repaint);
  CHECK_FALSE(manner_with(true, {{"TERM", "xterm"}, {"NO_COLOR", "1"}}).has_colour);
  CHECK(manner_with(true, {{"TERM", "xterm"}, {"NO_COLOR", ""}}).has_colour);
  CHECK_FALSE(manner_with(false, {{"TERM", "xterm"}}).has_colour);
  CHECK(manner_with(false, {{"CLICOLOR_FORCE", "1"}}).has_colour);
  CHECK_FALSE(manner_with(false, {{"CLICOLOR_FORCE", "0"}}).has_colour);
  CHECK_FALSE(manner_with(false, {{"CLICOLOR_FORCE", "1"}, {"NO_COLOR", "1"}}).has_colour);
  const TerminalManner accessible = manner_with(true, {{"TERM", "xterm"}, {"ACCESSIBLE", "1"}});
  CHECK_FALSE(accessible.may_repaint);
}

TEST_CASE("the first locale variable that is set decides about UTF-8") {
  CHECK(manner_with(true, {{"LANG", "de_DE.UTF-8"}}).has_utf8);
  CHECK(manner_with(true, {{"LC_ALL", "C.utf8"}, {"LANG", "C"}}).has_utf8);
  CHECK_FALSE(manner_with(true, {{"LC_ALL", "C"}, {"LANG", "C.UTF-8"}}).has_utf8);
  CHECK_FALSE(manner_with(true, {}).has_utf8);
}

TEST_CASE("no text of a model commands the terminal or changes how it is read") {
  CHECK(harmless_text("plain\ttext\n") == "plain\ttext\n");
  CHECK(harmless_text("a\x1b[2Jb") == "a␛[2Jb");
  CHECK(harmless_text("a\r\nb\rc") == "a\nb␍c");
  CHECK(harmless_text("\x07\x08\x7f") == "␇␈␡");
  CHECK(harmless_text("\xc2\x9b"
                      "31m") ==
        "\xef\xbf\xbd"
        "31m");                                                    // CSI of C1
  CHECK(harmless_text("x\xe2\x80\xaey") == "x\xef\xbf\xbdy");      // right-to-left override
  CHECK(harmless_text("x\xe2\x81\xa6y") == "x\xef\xbf\xbdy");      // isolate
  CHECK(harmless_text("x\xf3\xa0\x81\x81y") == "x\xef\xbf\xbdy");  // a tag
  CHECK(harmless_text("a\xff\xfe") == "a\xef\xbf\xbd\xef\xbf\xbd");
  CHECK(harmless_text("a\xe2\x82") == "a\xef\xbf\xbd");
  CHECK(harmless_text("日本 \xf0\x9f\x98\x80") == "日本 \xf0\x9f\x98\x80");
  CHECK(harmless_line("one\ntwo\tthree") == "one two three");
}

TEST_CASE("columns count wide and combining characters") {
  CHECK(columns_of("abc") == 3);
  CHECK(columns_of("日本") == 4);
  CHECK(columns_of("e\xcc\x81") == 1);
  CHECK(columns_of("") == 0);
}

TEST_CASE("a text fits exactly, and shows that it was cut") {
  CHECK(fit_columns("abc", 5, true) == "abc  ");
  CHECK(fit_columns("abcdef", 4, true) == "abc…");
  CHECK(fit_columns("abcdef", 4, false) == "abc~");
  CHECK(fit_columns("日本語", 4, false) == "日~ ");
  CHECK(fit_columns("abc", 0, true).empty());
  CHECK(first_columns("日本語", 5) == "日本");
  CHECK(first_columns("e\u0301a", 1) == "e\u0301");  // the mark stands on its letter
  CHECK(first_columns("日", 1).empty());
  CHECK(first_columns("abc", 9) == "abc");
}

}  // namespace
}  // namespace lockstep
