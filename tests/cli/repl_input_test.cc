#include <doctest/doctest.h>

#include "cli/editor/key_input.h"
#include "cli/repl/repl_commands.h"
#include "cli/repl/run_memory.h"

namespace lockstep {
namespace {

TEST_CASE("a line that begins with a slash is a command, with two it is a message") {
  const ReplInput message = parse_repl_input("hello /new");
  CHECK(message.kind == ReplInput::Kind::kMessage);
  CHECK(message.rest == "hello /new");
  CHECK(parse_repl_input("//path").rest == "/path");
  const ReplInput set = parse_repl_input("/set  temperature 0.5 ");
  CHECK(set.kind == ReplInput::Kind::kCommand);
  CHECK(set.command == ReplCommand::kSet);
  CHECK(set.rest == "temperature 0.5");
  CHECK(parse_repl_input("/bye").command == ReplCommand::kQuit);
  CHECK(parse_repl_input("/?").command == ReplCommand::kHelp);
}

TEST_CASE("an unknown command is refused, with the one that was perhaps meant") {
  CHECK(parse_repl_input("/modle").unknown == "there is no command /modle; did you mean /model?");
  CHECK(parse_repl_input("/frobnicate").unknown.find("/help") != std::string::npos);
  CHECK(parse_repl_input("/new x").unknown == "/new takes no argument");
  CHECK(parse_repl_input("/").kind == ReplInput::Kind::kUnknown);
}

TEST_CASE("commands and their values are completed") {
  CHECK(complete_repl_line("/mo", {}) == std::vector<std::string>{"/model"});
  CHECK(complete_repl_line("/model ", {"a", "b"}) == std::vector<std::string>{"a", "b"});
  CHECK(complete_repl_line("/model b", {"a", "b"}) == std::vector<std::string>{"b"});
  CHECK(complete_repl_line("/think m", {}) == std::vector<std::string>{"medium"});
  CHECK(complete_repl_line("/think s", {}) == std::vector<std::string>{"show"});
  CHECK(complete_repl_line("/set o", {}) == std::vector<std::string>{"off"});
  CHECK(complete_repl_line("/set st", {}) == std::vector<std::string>{"stop"});
  CHECK(complete_repl_line("/set max", {}) == std::vector<std::string>{"max_tokens"});
  CHECK(complete_repl_line("hello", {}).empty());
  CHECK(complete_repl_line("/set seed 1", {}).empty());
  CHECK(completes_path("/file src/"));
  CHECK(completes_path("/export "));
  CHECK_FALSE(completes_path("/files"));
  CHECK_FALSE(completes_path("/file"));
  CHECK_FALSE(completes_path("/model a"));
}

TEST_CASE("a completion inserts what all candidates have in common") {
  CHECK(completion_of_word("/mo", {"/model"}) == "del ");
  CHECK(completion_of_word("/s", {"/save", "/set", "/stats"}).empty());
  CHECK(completion_of_word("a", {"abc1", "abc2"}) == "bc");
  CHECK(completion_of_word("d", {"dir/"}) == "ir/");
  CHECK(completion_of_word("x", {}).empty());
  CHECK(completion_of_word("", {"\xc3\xa4", "\xc3\xb6"}).empty());  // not half a character
}

TEST_CASE("lines between three quotes are one message") {
  MessageLines lines;
  CHECK(lines.push("plain") == "plain");
  CHECK_FALSE(lines.push("\"\"\"one"));
  CHECK(lines.is_open());
  CHECK_FALSE(lines.push("two"));
  CHECK(lines.push("three\"\"\"") == "one\ntwo\nthree");
  CHECK(lines.push("\"\"\"single\"\"\"") == "single");
  CHECK_FALSE(lines.push("\"\"\""));
  CHECK_FALSE(lines.push("a"));
  CHECK(lines.push("\"\"\"") == "a");
  CHECK_FALSE(lines.push("\"\"\"x"));
  lines.drop();
  CHECK(lines.push("y") == "y");
}

TEST_CASE("a paste keeps its lines and loses control characters") {
  CHECK(cleaned_paste("a\r\nb\rc\n\td") == "a\nb\nc\n\td");
  CHECK(cleaned_paste("x\x1b[31my\x07\x7f") == "x[31my");
  CHECK(cleaned_paste("\xff") == "\xef\xbf\xbd");
}

TEST_CASE("the history keeps each line once, the newest last, within its limits") {
  std::string file = history_with("", "one");
  file = history_with(file, "two\nlines");
  file = history_with(file, "one");
  CHECK(parse_history(file) == std::vector<std::string>{"two\nlines", "one"});
  CHECK(parse_history("broken\n\"good\"\n12\n") == std::vector<std::string>{"good"});
  for (size_t i = 0; i < RunMemory::kLinesMax + 5; ++i) {
    file = history_with(file, std::to_string(i));
  }
  CHECK(parse_history(file).size() == RunMemory::kLinesMax);
  const std::string large(RunMemory::kLineBytesMax, 'x');
  for (int i = 0; i < 70; ++i) file = history_with(file, large + std::to_string(i));
  CHECK(file.size() <= RunMemory::kHistoryBytesMax);
  CHECK(parse_history(file).back() == large + "69");
}

}  // namespace
}  // namespace lockstep
