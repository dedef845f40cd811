#include "cli/repl/light_markdown.h"

#include <doctest/doctest.h>

#include <string>

namespace lockstep {
namespace {

TerminalManner colour_manner() {
  TerminalManner manner;
  manner.is_terminal = manner.has_colour = manner.has_utf8 = manner.may_repaint = true;
  return manner;
}

std::string shown_markdown(std::string_view text, size_t piece = 0) {
  LightMarkdown markdown(colour_manner());
  std::string out;
  if (piece == 0) piece = text.size() + 1;
  for (size_t at = 0; at < text.size(); at += piece) out += markdown.push(text.substr(at, piece));
  return out + markdown.finish();
}

TEST_CASE("headings and strong words are bold, fences are framed") {
  CHECK(shown_markdown("## Title\ntext") == "\x1b[1mTitle\x1b[0m\ntext");
  CHECK(shown_markdown("a **b** c") == "a \x1b[1mb\x1b[0m c");
  CHECK(shown_markdown("```python\nx = 1 ** 2\n```\n") ==
        "\x1b[2m── python ──\x1b[0m\nx = 1 ** 2\n\x1b[2m────\x1b[0m\n");
}

TEST_CASE("text that only looks like Markdown stays as it is") {
  for (const char* text :
       {"#hashtag", "2 ** 3 ** 4", "a * b * c", "`**`", "2 * 3", "*", "####### seven", "``", "",
        "```not a fence```", "    # far inside", "a # b"}) {
    CAPTURE(text);
    CHECK(shown_markdown(text) == text);
  }
}

TEST_CASE("a mark without its partner ends with its line") {
  CHECK(shown_markdown("**bold\nplain") == "\x1b[1mbold\x1b[0m\nplain");
  CHECK(shown_markdown("**bold") == "\x1b[1mbold\x1b[0m");
}

TEST_CASE("what is shown does not depend on how the text is cut") {
  const std::string text =
      "# One\n\nSome **strong** `co**de` words *here* and **there\n"
      "- item\n  ```c++\n  int a = *b ** c;\n  # no heading\n  ```\n~~~\n```\n~~~\n"
      "###### Six\n####### no\nend **";
  const std::string whole = shown_markdown(text);
  for (size_t piece = 1; piece <= 7; ++piece) CHECK(shown_markdown(text, piece) == whole);
}

TEST_CASE("without colours only the marks are gone") {
  LightMarkdown markdown(TerminalManner{});
  std::string shown = markdown.push("# A\n**b**\n```\nc\n```");
  shown += markdown.finish();
  CHECK(shown == "A\nb\n----\nc\n----");
}

}  // namespace
}  // namespace lockstep
