#include "cli/text/output.h"

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>

#include "cli/text/terminal_text.h"

namespace lockstep {
namespace {

// The width of the terminal of stderr; 80 if unknown.
size_t stderr_columns() {
  constexpr size_t kColumnsUnknown = 80;
  winsize size{};
  const bool is_known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return is_known ? size.ws_col : kColumnsUnknown;
}

}  // namespace

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
  const TerminalManner manner = stderr_manner();
  if (!manner.may_repaint) return;
  // A line that wraps could not be replaced.
  const size_t columns = stderr_columns() - 1;
  std::string line = harmless_line(text);
  if (columns_of(line) > columns) line = fit_columns(line, columns, manner.has_utf8);
  fmt::print(stderr, "\r\x1b[K{}", styled(manner, TextStyle::kDim, line));
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
