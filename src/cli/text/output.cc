#include "cli/text/output.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>

#include "cli/text/terminal_text.h"

namespace lockstep {

int fail(const Error& error) {
  clear_progress();
  fmt::print(stderr, "lockstep: {}\n", error.message);
  switch (error.code) {
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kNotFound:
    case ErrorCode::kUnsupported:
    case ErrorCode::kCorrupt:
      return kExitUsage;
    default:
      return kExitFailure;
  }
}

int exit_status(const Status& status) {
  return status.ok() ? 0 : fail(status.error());
}

void print_line(std::string_view text) {
  fmt::print("{}\n", text);
  std::fflush(stdout);
}

void print_json(const Json& value) {
  print_line(dump_json(value));
}

std::string counted(uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

bool stdout_is_terminal() {
  return isatty(STDOUT_FILENO) != 0;
}

bool stderr_is_terminal() {
  return isatty(STDERR_FILENO) != 0;
}

void show_progress(std::string_view text) {
  if (!stderr_manner().may_repaint) return;
  fmt::print(stderr, "\r\x1b[K{}", text);
  std::fflush(stderr);
}

void clear_progress() {
  show_progress("");
}

bool stdin_is_given() {
  struct stat facts {};
  return ::fstat(STDIN_FILENO, &facts) == 0 && (S_ISFIFO(facts.st_mode) || S_ISREG(facts.st_mode));
}

Result<std::string> read_stdin(size_t bytes_max) {
  std::string text;
  char buffer[4096];
  while (true) {
    const ssize_t got = ::read(STDIN_FILENO, buffer, sizeof(buffer));
    if (got < 0) return Error{ErrorCode::kInternal, "stdin cannot be read"};
    if (got == 0) return text;
    text.append(buffer, static_cast<size_t>(got));
    if (text.size() > bytes_max) {
      return Error{ErrorCode::kCorrupt,
                   fmt::format("stdin holds more than the limit of {} bytes", bytes_max)};
    }
  }
}

}  // namespace lockstep
