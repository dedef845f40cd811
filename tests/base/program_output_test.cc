#include "base/machine/program_output.h"

#include <doctest/doctest.h>

using namespace lockstep;

TEST_CASE("a program's output and exit status are returned") {
  const auto answer =
      run_program({.program = "sh", .arguments = {"-c", "echo a; echo b >&2; exit 3"}});
  REQUIRE(answer.ok());
  CHECK(answer.value().output == "a\n");
  CHECK(answer.value().status == 3);
}

TEST_CASE("a program's errors come with its output if they are wanted") {
  const auto answer = run_program(
      {.program = "sh", .arguments = {"-c", "echo a; echo b >&2"}, .with_errors = true});
  REQUIRE(answer.ok());
  CHECK(answer.value().output == "a\nb\n");
}

TEST_CASE("arguments reach a program unchanged") {
  const auto answer = run_program({.program = "printf", .arguments = {"%s|", "a b", "$HOME", "'"}});
  REQUIRE(answer.ok());
  CHECK(answer.value().output == "a b|$HOME|'|");
}

TEST_CASE("a missing program is named") {
  const auto answer = run_program({.program = "lockstep-has-no-such-program"});
  REQUIRE_FALSE(answer.ok());
  CHECK(answer.error().code == ErrorCode::kNotFound);
  CHECK(answer.error().message == "the program lockstep-has-no-such-program does not exist");
}

TEST_CASE("a program that does not end is an error at the deadline") {
  const auto answer = run_program({.program = "tail",
                                   .arguments = {"-f", "/dev/null"},
                                   .timeout = std::chrono::milliseconds(200)});
  REQUIRE_FALSE(answer.ok());
  CHECK(answer.error().code == ErrorCode::kTimeout);
}

TEST_CASE("a program that prints without end is cut and ends at the deadline") {
  const auto answer = run_program(
      {.program = "yes", .timeout = std::chrono::milliseconds(300), .output_bytes_max = 1000});
  REQUIRE_FALSE(answer.ok());
  CHECK(answer.error().code == ErrorCode::kTimeout);
  const auto cut = run_program(
      {.program = "sh", .arguments = {"-c", "yes | head -c 50000"}, .output_bytes_max = 1000});
  REQUIRE(cut.ok());
  CHECK(cut.value().output.size() == 1000);
}

TEST_CASE("a stream of a program that does not exist ends") {
  auto stream = ProgramStream::start("lockstep-has-no-such-program", {});
  REQUIRE(stream.ok());
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (stream.value().read() && std::chrono::steady_clock::now() < deadline) {
  }
  CHECK_FALSE(stream.value().read().has_value());
}
